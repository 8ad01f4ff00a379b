#!/bin/sh
# tables.sh - writes the tables of experiments 26 and 21 and of docs/11_bug_museum.md, as the test
# programs of these names compute them in double. If a check of a program fails, it writes nothing.
#
# Environment: CC, BUILD.
set -eu
cd "$(dirname "$0")/../.."
: "${CC:=cc}" "${BUILD:=build}"
mkdir -p "$BUILD/tests"
for program in test_worked_examples test_invariance test_museum; do
    $CC -std=c99 -O1 -ffp-contract=off -DNRM_DOUBLE -I. -Iexamples -Itests \
        "tests/pages/$program.c" -o "$BUILD/tests/$program.tables" -lm
    "$BUILD/tests/$program.tables" --docs
done
