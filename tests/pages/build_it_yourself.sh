#!/bin/sh
# build_it_yourself.sh - the twelve steps of docs/13_build_it_yourself.md, as a reader does them:
# the diffs are applied one after the other to an empty file, code first and then its test; after
# each step the program compiles without a warning and prints what the page says. A diff of code
# changes at most 30 lines. And the tests can fail: each of three mistakes in the last program is
# found.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh
: "${CC:=cc}"
page=docs/13_build_it_yourself.md
root=$PWD

# 01.diff, 02.diff, ... and behind every second one what the program then prints: 02.text, ...
awk -v to="$dir" '
    /^```/ && open { open = 0; close(out); next }
    /^```diff$/ {
        out = sprintf("%s/%02d.diff", to, ++n)
        print "--- net.c\n+++ net.c" > out
        open = 1
        next
    }
    /^```text$/ { out = sprintf("%s/%02d.text", to, n); open = 1; next }
    /^```/ { out = "/dev/null"; open = 1; next }
    open { print > out }' "$page"

apply() { (cd "$dir" && git apply -p0 --include=net.c "$1"); }
compile() { # program, options
    # shellcheck disable=SC2086
    $CC -O2 -Wall -Wextra -Werror -I"$root" -I"$root/examples" "$1" -o "$dir/net" -lm
}
small() { # a diff of code, without its two lines of names
    changed=$(tail -n +3 "$1" | grep -c '^[+-].*[^ ]')
    [ "$changed" -le 30 ] || { echo "$changed lines" && return 1; }
}
# In a folder without MNIST. How many digits are recognized is for the C library's exp to say, too.
prints() { # expected
    (cd "$dir" && unset MNIST_DIR && ./net) >"$dir/printed" &&
        [ "$(tail -n 1 "$dir/printed")" = "$(tail -n 1 "$1")" ]
}

: >"$dir/net.c"
step=0
for text in "$dir"/??.text; do
    step=$((step + 1))
    code=$(printf '%s/%02d.diff' "$dir" $((2 * step - 1)))
    test=$(printf '%s/%02d.diff' "$dir" $((2 * step)))
    [ $step -le 12 ] || break
    check "step $step: its code is at most 30 lines" small "$code"
    check "step $step: its code applies" apply "$code"
    check "step $step: its test applies" apply "$test"
    check "step $step compiles" compile "$dir/net.c"
    check "step $step prints what the page says" prints "$text"
done
check "there are twelve steps" [ "$step" -eq 12 ]

# One mistake, named by the line with its tag; the digits are not needed to find it.
mistake() { # tag, sed script
    sed "/$1/$2" "$dir/net.c" >"$dir/wrong.c"
    ! cmp -s "$dir/net.c" "$dir/wrong.c" && sed -i.bak '/^    test_digits();$/d' "$dir/wrong.c" &&
        compile "$dir/wrong.c" && ! (cd "$dir" && ./net)
}
CC="$CC -Wno-unused-function"
check "a lost mean is found" mistake 'BN.19' 's/ - dy_mean/ - 0 * dy_mean/'
check "a lost term of layer norm is found" mistake 'LN.14' \
    's/ - xhat\[i\] \* dot_mean/ - 0 * dot_mean/'
check "a wrong sign in the loss is found" mistake 'CE.6' 's/ - (c == / + (c == /'
verdict build_it_yourself
