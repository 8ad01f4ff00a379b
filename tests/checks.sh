# checks.sh - for shell tests, to be sourced from the root of the project: a folder $dir that goes
# when the script ends, and check NAME COMMAND..., which counts, and shows what a failure printed;
# or pass and fail NAME, which shows what is in $dir/log. The script ends with: verdict PART
#
# What cannot be checked here, for want of a program, is said in a line "PART: missing: PROGRAM, and
# what is left out": .ci/run, which installs all of them first, counts each as a failure.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
passed=0
failed=0

pass() { passed=$((passed + 1)); }

fail() { # fail NAME
    failed=$((failed + 1))
    echo "failed: $1"
    [ ! -s "$dir/log" ] || tail -n 20 "$dir/log"
}

check() { # check NAME COMMAND...
    what=$1
    shift
    if "$@" >"$dir/log" 2>&1; then pass; else fail "$what"; fi
}

verdict() { # verdict PART: the last line, and the exit code
    echo "$1: $passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
