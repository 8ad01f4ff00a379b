#!/bin/sh
# docs/api.json says what the header declares: it is what tests/bindings/api.awk makes of it now, it
# has every function and struct, and no gamma is without its shape.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh
LC_ALL=C
export LC_ALL
declared() { # the header up to its implementation
    sed '/^#endif \/\* NORMLAYERS_H/q' normlayers.h
}
names() { # PATTERN PATTERN: both lists are the same, and neither is empty
    declared | sed -n "$1" | sort >"$dir/header"
    sed -n "$2" docs/api.json | sort >"$dir/json"
    [ -s "$dir/header" ] && diff "$dir/header" "$dir/json"
}
awk -f tests/bindings/api.awk normlayers.h >"$dir/api.json"
check "docs/api.json is current (else: make api-docs)" cmp "$dir/api.json" docs/api.json
check "it has every function" names \
    's/^NRM_DEF [a-z0-9_ ]*[ *]\(nrm_[a-z0-9_]*\)(.*/\1/p' \
    's/^ *{"name": "\(nrm_[a-z0-9_]*\)", "returns".*/\1/p'
check "it has every struct" names 's/^typedef struct NRM_OWN(\([a-z_]*\)).*/\1/p' \
    's/^ *{"name": "\(nrm_[a-z_]*\)", "fields".*/\1/p'
check "gamma has a shape everywhere" sh -c "! grep '\"name\": \"gamma\"' docs/api.json |
    grep direction | grep -v shape"
verdict api
