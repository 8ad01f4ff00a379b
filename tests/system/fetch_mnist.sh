#!/bin/sh
# fetch_mnist.sh - examples/fetch_mnist.sh takes nothing that is not MNIST: what is damaged, not the
# file, or unpacks to more than MNIST has is refused, and nothing of it stays.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh
mirror=$dir/mirror
file=$mirror/train-images-idx3-ubyte
mkdir "$mirror"
refused() { # refused TEXT: and the folder is as empty as it was
    MNIST_URL=$mirror sh examples/fetch_mnist.sh "$dir/got" >"$dir/said" 2>&1 && return 1
    cat "$dir/said"
    grep -q "$1" "$dir/said" && [ -z "$(ls -A "$dir/got")" ]
}
check "no file" refused "cannot get train-images-idx3-ubyte.gz or"
: >"$file"
check "an empty file" refused "is not the file of MNIST"
echo "<html>" >"$file"
check "a web page" refused "is not the file of MNIST"
echo "something else" | gzip >"$file.gz"
check "another file" refused "is not the file of MNIST"
head -c 20000 /dev/urandom | gzip | head -c 15000 >"$file.gz"
check "a part of a file" refused "damaged or cut short"
# Packed it is small, unpacked larger than any disk would like.
head -c 60000000 /dev/zero | gzip >"$file.gz"
check "a bomb" refused "unpacks to more than any file of MNIST has"
check "an unknown option" sh -c "sh examples/fetch_mnist.sh --what 2>/dev/null; [ \$? -eq 2 ]"
verdict fetch_mnist
