#!/bin/sh
# install.sh - `make install` puts its files where it says, a program that asks pkg-config for them
# compiles and runs, and `make uninstall` leaves nothing behind. The names of the folders may have
# spaces in them: DESTDIR, PREFIX, BUILD, STB and that of the clone. `make` says what there is.
# What CMake and Meson make of an installed header: tests/compile/packaging.sh.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${CC:=cc}"
. tests/checks.sh
unset BUILD STB ONLY FIGURES MAKEFLAGS MFLAGS

root="$dir/a root" prefix="/opt/n m"
check "install" make -s install DESTDIR="$root" PREFIX="$prefix"
to=$root$prefix
check "the header is the header" cmp normlayers.h "$to/include/normlayers.h"
version=$(sed -n 's/^.define NRM_VERSION "\(.*\)"/\1/p' normlayers.h)
pc=$to/share/pkgconfig/normlayers.pc
check "normlayers.pc has the version" grep -qx "Version: $version" "$pc"
cat >"$dir/app.c" <<'END_OF_APP'
#define NORMLAYERS_IMPLEMENTATION
#include <normlayers.h>
int main(void)
{
    return nrm_strerror(NRM_OK)[0] == '\0';
}
END_OF_APP
if command -v pkg-config >/dev/null 2>&1; then
    flags=$(PKG_CONFIG_PATH="${pc%/*}" pkg-config --cflags --libs normlayers)
else
    flags="'-I$to/include' -lm"
fi
eval "set -- $flags" # the flags are quoted for a shell
check "a program compiles against it" "$CC" "$dir/app.c" -o "$dir/app" "$@"
check "and runs" "$dir/app"
check "uninstall" make -s uninstall DESTDIR="$root" PREFIX="$prefix"
check "nothing is left" test -z "$(find "$root" -type f)"

# A clone, a folder to build in and one with stb, all with spaces: with a stand-in for the compiler.
clone="$dir/a clone" stb="$dir/an stb"
mkdir "$clone" "$stb"
cp -R Makefile normlayers.h examples "$clone"
cat >"$dir/cc" <<'END_OF_CC'
#!/bin/sh
for word; do
    [ "${last:-}" != -isystem ] || [ -f "$word/stb_image_write.h" ] || exit 1
    [ "${last:-}" != -o ] || : >"$word"
    last=$word
done
END_OF_CC
chmod +x "$dir/cc"
: >"$stb/stb_image_write.h"
in_clone() {
    make -C "$clone" CC="$dir/cc" "$@"
}
check "a clone with a space" in_clone BUILD=build STB="$stb" examples
check "is built" test -f "$clone/build/03_spiral"
check "into a folder with spaces" in_clone BUILD="my own build" STB="$stb" examples
check "is built there" test -f "$clone/my own build/03_spiral"
check "and elsewhere" in_clone BUILD="$dir/over there" STB="$stb" experiments ONLY="16 17"
check "two of them" test -f "$dir/over there/17_learning_rates"
check "and not a third" test ! -f "$dir/over there/18_sgd_noise"
check "clean" in_clone BUILD="my own build" clean
check "it is gone" test ! -d "$clone/my own build"

check "an experiment that there is not" sh -c "! make -s experiments ONLY=99 2>'$dir/said'"
check "is told" grep -q "there is no experiment 99" "$dir/said"
make -s >"$dir/help"
check "first what a newcomer wants" sh -c "sed 5q '$dir/help' | grep -q 'make deps test '"
sed -n 's/^\([a-z-]*\):.*## .*/\1/p' Makefile | sort >"$dir/targets"
check "and then every target that has a word to say" sh -c "sed 1,5d '$dir/help' |
    sed -n 's/^  make \([a-z-]*\) .*/\1/p' | sort | cmp - '$dir/targets'"
check "no line is wider than 100" sh -c "! grep -q '.\{101\}' '$dir/help'"
verdict install
