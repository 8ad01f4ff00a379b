#!/bin/sh
# fetch_mnist.sh: downloads MNIST, checks it and unpacks it.
#
# What counts is the content: a file is taken only if its SHA-256, unpacked, is that of the original
# distribution. So it does not matter which mirror it comes from. Files that are right already are
# kept, and a file is replaced by a rename at the very end, once the new one is known to be good.

set -u
LC_ALL=C
export LC_ALL

usage()
{
    cat <<'TEXT'
usage: fetch_mnist.sh [DIR]

Downloads the four files of MNIST (11 MB, 55 MB unpacked) to DIR, by default data/mnist.
Files there that are right already are kept.

environment:
  MNIST_URL   where to get them instead of the public mirrors: http://..., https://...,
              file://... or the name of a folder. It holds the files, each with .gz or without.

exit code: 0 all four files are there and right, 1 something failed, 2 wrong usage
TEXT
}

say() { printf '%s\n' "$*"; }
complain() { printf 'fetch_mnist: %s\n' "$*" >&2; }
die() { complain "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# The SHA-256 of file $1 in hexadecimal digits.
sha256()
{
    if have sha256sum; then
        sha256sum <"$1"
    elif have shasum; then
        shasum -a 256 <"$1"
    else
        openssl dgst -sha256 -r <"$1"
    fi | cut -d ' ' -f 1
}

is_right() { [ -f "$1" ] && [ "$(sha256 "$1")" = "$2" ]; }

# The first bytes of file $1: a gzip file?
is_gzip() { [ "$(dd if="$1" bs=2 count=1 2>/dev/null | od -An -tx1 | tr -d ' \n')" = 1f8b ]; }

# Copies file $2 of folder $1 to $3.
copy()
{
    if [ ! -f "$1/$2" ]; then
        echo "no such file" >"$work/why"
        return 1
    fi
    cat <"$1/$2" >"$3"
}

# Downloads $1 to $2. Waits at most 15 s for a connection and 30 s for one that stalls.
download()
{
    if have curl; then
        curl -fsSL --connect-timeout 15 --speed-limit 1000 --speed-time 30 --max-time 600 \
            --retry 1 --retry-delay 2 -o "$2" "$1" 2>"$work/why"
    elif have wget; then
        wget -q -T 30 -t 2 -O "$2" "$1" 2>"$work/why"
    else
        die "neither curl nor wget is there: 'sh examples/deps.sh mnist' installs curl, or set" \
            "MNIST_URL to a folder"
    fi
}

# Gets file $2 of mirror $1 to $3, whatever kind of address it is.
get()
{
    case $1 in
    file://*) copy "${1#file://}" "$2" "$3" ;;
    *://*) download "$1/$2" "$3" ;;
    *) copy "$1" "$2" "$3" ;;
    esac
}

# Gets file $2 of mirror $1 to $work/got, packed or else as it is. The second is tried only if the
# mirror answered that it does not have the first (curl says 22, wget 8, copy 1): whoever cannot be
# reached is not asked twice.
get_either()
{
    get "$1" "$2.gz" "$work/got" && return 0
    case $? in
    1 | 8 | 22) get "$1" "$2" "$work/got" ;;
    *) return 1 ;;
    esac
}

# Gets file $2 of mirror $1 to $work/raw, unpacked. No file of MNIST has more than $most bytes; what
# unpacks to more is not one, however small it came.
most=47040016
unpack_from()
{
    : >"$work/why"
    rm -f "$work/got" "$work/raw"
    if ! get_either "$1" "$2"; then
        why=$(tail -n 1 "$work/why")
        complain "$1: cannot get $2.gz or $2${why:+ ($why)}"
        return 1
    fi
    if ! is_gzip "$work/got"; then
        mv -f "$work/got" "$work/raw"
        return 0
    fi
    rm -f "$work/damaged"
    { gzip -dc <"$work/got" 2>/dev/null || : >"$work/damaged"; } |
        head -c $((most + 1)) >"$work/raw"
    if [ "$(wc -c <"$work/raw")" -gt "$most" ]; then
        complain "$1: $2.gz unpacks to more than any file of MNIST has"
        return 1
    elif [ -f "$work/damaged" ]; then
        complain "$1: $2.gz is damaged or cut short: gzip cannot unpack it"
        return 1
    fi
}

# Puts file $2 with SHA-256 $3 from mirror $1 into place.
fetch_from()
{
    unpack_from "$1" "$2" || return 1
    if is_right "$work/raw" "$3"; then
        mv -f "$work/raw" "$dir/$2" || die "cannot write $dir/$2"
        return 0
    fi
    complain "$1: $2 is not the file of MNIST: SHA-256 $(sha256 "$work/raw"), expected $3"
    return 1
}

case ${1-} in
-h | --help) usage; exit 0 ;;
-*) complain "unknown option $1, see --help"; exit 2 ;;
esac
if [ $# -gt 1 ]; then complain "one folder at most, see --help"; exit 2; fi
dir=${1:-data/mnist}
case $dir in /*) ;; *) dir=./$dir ;; esac

have sha256sum || have shasum || have openssl ||
    die "no program computes SHA-256: install sha256sum, shasum or openssl"
have gzip || die "gzip is missing"
mkdir -p "$dir" || die "cannot make the folder $dir"
work=$dir/.fetch.$$ # on the same file system as the result, or a rename would not be atomic
mkdir "$work" || die "cannot write into $dir"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# The mirrors are the arguments from here on; one that fails is not asked again.
if [ -n "${MNIST_URL:-}" ]; then
    set -- "${MNIST_URL%/}"
else
    set -- https://ossci-datasets.s3.amazonaws.com/mnist \
        https://storage.googleapis.com/cvdf-datasets/mnist \
        https://raw.githubusercontent.com/fgnt/mnist/master \
        http://yann.lecun.com/exdb/mnist
fi

for entry in \
    train-images-idx3-ubyte:ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db \
    train-labels-idx1-ubyte:65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5 \
    t10k-images-idx3-ubyte:0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7 \
    t10k-labels-idx1-ubyte:ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2; do
    file=${entry%%:*}
    sum=${entry#*:}
    if is_right "$dir/$file" "$sum"; then
        say "$file: already there and right"
        continue
    fi
    if [ -d "$dir/$file" ]; then die "$dir/$file is a folder; remove it"; fi
    if [ -e "$dir/$file" ]; then say "$file: there, but damaged; fetching it again"; fi
    while [ $# -gt 0 ]; do
        say "$file: from $1"
        if fetch_from "$1" "$file" "$sum"; then break; fi
        shift
    done
    if [ $# -eq 0 ]; then
        complain "could not get $file. Without MNIST every example runs on synthetic digits."
        if [ -n "${MNIST_URL:-}" ]; then
            complain "hint: MNIST_URL=$MNIST_URL must hold the four files, with .gz or without"
        else
            complain "hint: get the files another way, then make mnist MNIST_URL=file:///FOLDER"
        fi
        exit 1
    fi
done
say "MNIST is complete in ${dir#./}: four files with the right SHA-256"
