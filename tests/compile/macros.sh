#!/bin/sh
# Which macros normlayers.h leaves behind in the file that includes it. Declarations alone leave the
# documented ones and no others. The implementation may leave more, but every name begins with NRM_
# or is the guard (with NRM_DOUBLE and NRM_ACC also the public functions, which are renamed by
# macros), and the options that the user has set keep their values.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh

# What the declarations define for the user ...
public='NORMLAYERS_H NRM_VERSION_MAJOR NRM_VERSION_MINOR NRM_VERSION_PATCH NRM_VERSION NRM_EPS
NRM_DEF NRM_STATUS_LIST NRM_STATUS_ENUM NRM_OWN'
# ... and what renames the functions.
renaming='NRM_LINK NRM_LINK2 NRM_LINK3 NRM_TAG'
expect() { # what, actual file, allowed names...
    what=$1
    actual=$2
    shift 2
    printf '%s\n' "$@" | sort >"$dir/allowed"
    sort "$actual" | comm -13 "$dir/allowed" - >"$dir/log"
    if [ -s "$dir/log" ]; then fail "$what leaks"; else pass; fi
}

names() {
    awk '{sub(/\(.*/, "", $2); print $2}' | sort -u
}

# The names defined after including the header, less those that its own includes define.
left() { # compiler, flags, include line
    printf '#include <%s.h>\n' stddef stdint math string stdio >"$dir/plain"
    { cat "$dir/plain" && printf '%s\n#include "normlayers.h"\n' "$3"; } >"$dir/with"
    # shellcheck disable=SC2086
    "$1" $2 -E -dM -x "$language" "$dir/plain" | names >"$dir/before"
    # shellcheck disable=SC2086
    "$1" $2 -I. -E -dM -x "$language" "$dir/with" | names >"$dir/after"
    comm -13 "$dir/before" "$dir/after"
}

# Options that the user sets, with values that the header would not choose.
options='-DNRM_SQRT(a)=my_sqrt(a) -DNRM_MEMCPY(a,b,n)=my_copy(a,b,n)
-DNRM_MEMSET(a,b,n)=my_set(a,b,n)
-DNRM_WIDTH=96 -DNRM_DEF=extern'
kept() { # compiler, flags: each option is defined as before, with its value
    printf '#define NORMLAYERS_IMPLEMENTATION\n#include "normlayers.h"\n' >"$dir/unit"
    # shellcheck disable=SC2086
    "$1" $2 $options -I. -E -dM -x "$language" "$dir/unit" >"$dir/all" || return 1
    for option in NORMLAYERS_IMPLEMENTATION $options $2; do
        given=${option#-D}
        case $given in *=*) text=${given#*=} ;; *) text= ;; esac
        name=${given%%=*}
        name=${name%%(*}
        grep -q "^#define $name\([ (].*\)\{0,1\}$text\$" "$dir/all" ||
            { echo "$option: $(grep "^#define $name[ (]" "$dir/all")"; return 1; }
    done
}

for compiler in gcc clang; do
    command -v "$compiler" >/dev/null 2>&1 || { echo "macros: missing: $compiler"; continue; }
    for language in c c++; do
        for flags in "" -DNRM_DOUBLE -DNRM_ACC=float -DNRM_STATIC -DNRM_NO_VECTORS -DNRM_PLAIN; do
            what="$compiler $language $flags"
            left "$compiler" "$flags" "" >"$dir/declared"
            left "$compiler" "$flags" "#define NORMLAYERS_IMPLEMENTATION" >"$dir/implemented"
            # the functions' new names: nrm_x defined as a macro
            grep '^nrm_' "$dir/implemented" >"$dir/renamed"
            case $flags in
            *NRM_DOUBLE* | *NRM_ACC*) extra="$renaming $(cat "$dir/renamed")" ;;
            *) extra= ;;
            esac
            private=
            case $flags in *NRM_STATIC*) private=$(grep '^NRM_' "$dir/implemented") ;; esac
            # shellcheck disable=SC2086
            expect "$what: include" "$dir/declared" $public $extra $private
            # shellcheck disable=SC2046,SC2086
            expect "$what: implementation" "$dir/implemented" $extra NORMLAYERS_H \
                NORMLAYERS_IMPLEMENTATION $(grep '^NRM_' "$dir/implemented")
            # a macro that exists only for the lint would be a hole in it
            check "$what: NRM_VERSION is found" grep -q '^NRM_VERSION$' "$dir/declared"
            [ "$flags" = -DNRM_PLAIN ] && continue # its NRM_WIDTH is 1, as the options say
            check "$what: the options are kept" kept "$compiler" "$flags"
        done
    done
done

# Every function is renamed: one that is forgotten would link across precisions. A public struct has
# its own name in C++ by NRM_OWN.
sed -n 's/^NRM_DEF [^(]*[ *]\(nrm_[a-z0-9_]*\)(.*/\1/p' normlayers.h | sort -u >"$dir/functions"
sed -n 's/^#define \(nrm_[a-z0-9_]*\) NRM_LINK(\1)$/\1/p' normlayers.h | sort >"$dir/links"
check "functions are found" test -s "$dir/functions"
check "functions and their link names agree" diff "$dir/functions" "$dir/links"
check "structs have NRM_OWN" sh -c "grep -q '^typedef struct NRM_OWN(nrm_' normlayers.h &&
    ! grep '^typedef struct nrm_' normlayers.h"
verdict macros
