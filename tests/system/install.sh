#!/bin/sh
# install.sh - `make install` puts header and normlayers.pc where it says, a program that asks
# pkg-config for them compiles and runs, and `make uninstall` leaves nothing behind.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${CC:=cc}"
. tests/checks.sh

check "install" make -s install DESTDIR="$dir/root" PREFIX=/opt/nrm
check "the header is the header" cmp normlayers.h "$dir/root/opt/nrm/include/normlayers.h"
version=$(sed -n 's/^.define NRM_VERSION "\(.*\)"/\1/p' normlayers.h)
pc=$dir/root/opt/nrm/share/pkgconfig/normlayers.pc
check "normlayers.pc has the version" grep -qx "Version: $version" "$pc"
cat >"$dir/app.c" <<'END'
#define NORMLAYERS_IMPLEMENTATION
#include <normlayers.h>
int main(void)
{
    return nrm_strerror(NRM_OK)[0] == '\0';
}
END
if command -v pkg-config >/dev/null 2>&1; then
    flags=$(PKG_CONFIG_PATH="$dir/root/opt/nrm/share/pkgconfig" \
        pkg-config --define-variable=prefix="$dir/root/opt/nrm" --cflags --libs normlayers)
else
    flags="-I$dir/root/opt/nrm/include -lm"
fi
# shellcheck disable=SC2086
check "a program compiles against it" "$CC" "$dir/app.c" -o "$dir/app" $flags
check "and runs" "$dir/app"
check "uninstall" make -s uninstall DESTDIR="$dir/root" PREFIX=/opt/nrm
check "nothing is left" test -z "$(find "$dir/root" -type f)"
verdict install
