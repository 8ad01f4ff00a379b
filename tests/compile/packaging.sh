#!/bin/sh
# packaging.sh - the snippets of docs/packaging.md, as they stand there, build a project that prints
# what it should; the table at the end says which, how long it took, and with what result. What is
# marked "not run" there is not run here. Tools: cmake, meson, ninja, pkg-config, g++, clang,
# arm-none-eabi-gcc.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${CC:=cc}" "${CXX:=c++}"
. tests/checks.sh
unset MAKEFLAGS MFLAGS DESTDIR
page=$PWD/docs/packaging.md
root=$PWD
export PREFIX="$dir/prefix"
answer="-1.3416 -0.4472 0.4472 1.3416"
version=$(sed -n 's/^.define NRM_VERSION "\(.*\)"/\1/p' normlayers.h)

# A release of this commit. The header that is built is the one here, committed or not.
check "make dist" sh -c "git clone -q . '$dir/clone' && make -s -C '$dir/clone' dist"
dist=$dir/clone/build/dist
check "its sums are right" sh -c "cd '$dist' && sha256sum -c SHA256SUMS"
check "it has the header alone" cmp "$dist/normlayers-$version.h" "$dir/clone/normlayers.h"
check "its tarball has no history" sh -c "gzip -dc '$dist/normlayers-$version.tar.gz' | tar tf - |
    sed 's:^[^/]*/::' | sort >'$dir/in_tarball' && grep -qx normlayers.h '$dir/in_tarball' &&
    ! grep -q '^\.git/' '$dir/in_tarball'"
book=$dir/book
mkdir -p "$book"
check "its book has an explorable page" sh -c "gzip -dc '$dist/normlayers-$version-book.tar.gz' |
    tar xf - -C '$book' && cmp '$book/book/explore.html' '$dist/normlayers-$version-explore.html'"
check "its book has search and no links to the repository" sh -c "
    test -s '$book/book/book/search.js' && ! find '$book' -type l | grep ."
check "its PDF has pages" sh -c "grep -ac '/Type /Page$' '$dist/normlayers-$version-book.pdf' |
    grep -qE '^[0-9]{3,}$'"
check "make install" make -s install PREFIX="$PREFIX"
release=$dir/release/v$version
mkdir -p "$release"
cp normlayers.h "$release"
cp "$dist/normlayers-$version.tar.gz" "$release"
sum() { sha256sum "$1" | cut -d' ' -f1; }

# The blocks of a section ("" is the opening): those that begin with a comment "NAME" become that
# file, those of the language sh become the commands.
snippets() { # SECTION
    awk -v section="$1" '
        /^## / { inside = substr($0, 4) == section; next }
        NR == 1 { inside = section == "" }
        /^```/ && open { open = 0; close(out); next }
        /^```/ { open = 1; language = substr($0, 4); first = 1; next }
        !open || !inside { next }
        first && language != "sh" && (NF == 2 || NF == 3) {
            out = $2
            folder = out
            if (sub(/\/[^\/]*$/, "", folder)) system("mkdir -p " folder)
        }
        first && language == "sh" { out = "commands" }
        { first = 0; print >>out }' "$page"
}
adapt() { # the place of the release, and its sums
    hash=$(sum "$release/normlayers.h")
    case $1 in *.wrap) hash=$(sum "$release/normlayers-$version.tar.gz") ;; esac
    sed -i "s|https://example.org|file://$dir/release|; s|0\{64\}|$hash|" "$1"
}
project() { # SECTION: a folder with its files, and app.c
    rm -rf "$dir/project"
    mkdir "$dir/project" && cd "$dir/project" && snippets "" && snippets "$1" || exit
    find . -type f >"$dir/files"
    while read -r file; do adapt "$file"; done <"$dir/files"
}
row() { # NAME COMMAND CHECK...: checks it, with a row of the table that shows the command
    name=$1 shown=$2 before=$failed began=$(date +%s.%N)
    shift 2
    check "$name" "$@"
    awk -v n="$name" -v c="$shown" -v a="$began" -v b="$(date +%s.%N)" -v f=$((failed - before)) \
        'BEGIN { printf "| %s | `%s` | %.1f | %s |\n", n, c, b - a, f ? "FAILS" : "works" }' \
        >>"$dir/table"
}
way() { # SECTION [FILE...]: runs its commands on its files, and its programs; FILEs of the test
    row "$1" "$(awk -v s="$1" '/^## / { on = substr($0, 4) == s } on && sh && !/^```|^export/ {
        printf "%s%s", (n++ ? "; " : ""), $0 } { sh = $0 == "```sh" || sh && !/^```/ }' "$page")" \
        build_and_run "$@"
}
build_and_run() (
    project "$1"
    shift
    [ $# -eq 0 ] || cp "$@" . || exit
    sh -eu ./commands || exit
    ran=0
    for program in app*; do
        case $program in *.*) continue ;; esac
        ran=1
        [ "$("./$program" | tr '\n' ' ' | sed 's/ *$//')" = "$answer" ] || exit 1
    done
    [ $ran = 1 ]
)

check "the page names this version" grep -q "v$version/normlayers.h" "$page"
way "Plain copy"
way "CMake, fetched"
check "CMake refuses a file with another sum" sh -c "cd '$dir/project' && rm -rf build &&
    echo >>'$release/normlayers.h' && ! cmake -S . -B build"
cp normlayers.h "$release"
way "CMake, installed"
for asked in 0.1 0.3 1.0; do
    check "CMake refuses version $asked" sh -c "cd '$dir/project' && rm -rf build &&
        sed -i 's/normlayers [0-9.]* REQ/normlayers $asked REQ/' CMakeLists.txt &&
        ! cmake -S . -B build -DCMAKE_PREFIX_PATH='$PREFIX'"
done
way "pkg-config"
way "Meson"
check "Meson takes an installed one" sh -c "cd '$dir/project' && rm -rf build subprojects &&
    PKG_CONFIG_PATH='$PREFIX/share/pkgconfig' meson setup build && meson compile -C build"
way "C++20 module" "$root/normlayers.h"

# A sketch, with a stand-in for Arduino's library; clang-cl's flags, with one for its two headers.
cat >"$dir/Arduino.h" <<'ARDUINO'
#include <stdio.h>
struct { void begin(long) {} void println(double x, int n) { printf("%.*f\n", n, x); } } Serial;
ARDUINO
cat >"$dir/arduino.cpp" <<'ARDUINO'
#include "Arduino.h"
#include "sketch.ino"
int main() { setup(); loop(); }
ARDUINO
sketch() {
    build_and_run "Arduino and PlatformIO" "$root/normlayers.h" "$dir/Arduino.h" \
        "$dir/arduino.cpp" "$dir/commands"
}
echo "$CXX -std=gnu++11 arduino.cpp -o app" >"$dir/commands"
row "Arduino, a stand-in" "$(cat "$dir/commands")" sketch
cl=$(sed -n 's/^clang-cl \(.*\) app.c$/\1/p' "$page")
clang_cl() {
    [ -n "$cl" ] || return 1
    # shellcheck disable=SC2086
    clang --driver-mode=cl --target=x86_64-pc-windows-msvc $cl /W3 /WX /c /TC normlayers.h \
        /DNORMLAYERS_IMPLEMENTATION /DNRM_NO_LIBC /DNRM_SQRT=__builtin_sqrt \
        /DNRM_MEMCPY=__builtin_memcpy /DNRM_MEMSET=__builtin_memset "/Fo$dir/normlayers.obj"
}
row "clang-cl, header only" "clang-cl $cl" clang_cl
small=$(grep '^arm-none-eabi-gcc ' "$page")
if command -v arm-none-eabi-gcc >/dev/null 2>&1; then
    row "Cortex-M4, no C library" "$small" sh -c "$small -o '$dir/small.o'"
else
    echo "packaging: missing: arm-none-eabi-gcc (\`make deps-dev\` installs it), no Cortex-M4"
fi
printf '\n| way | command | seconds | result |\n|---|---|---|---|\n'
cat "$dir/table"
sed -n '/^## /h; /^\*Not run[.:]\*/{ x; s/## \(.*\)/| \1 | | | not run |/p; }' "$page"
echo
verdict packaging
