#!/bin/sh
# suite.sh - tests/run.sh with stand-ins for the compiler: what another compiler has made is not
# used, what the same one has made is; and what a part could not check is shown.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh
for cc in one other; do # makes programs that pass, and writes down what for
    cat >"$dir/$cc" <<END
#!/bin/sh
while [ \$# -gt 1 ] && [ "\$1" != -o ]; do shift; done
[ \$# -gt 1 ] || exit 0
basename "\$2" >>"$dir/made_by_$cc"
printf '#!/bin/sh\\necho "part: missing: a program"\\necho "part: 1 passed, 0 failed"\\n' >"\$2"
chmod +x "\$2"
END
    chmod +x "$dir/$cc"
done
runs() { # runs COMPILER: one part of the suite
    rm -f "$dir/made_by_$1"
    CC="$dir/$1" BUILD="$dir/build" sh tests/run.sh one test_layers.f32 >"$dir/said"
}
made() { # made COMPILER: the header's functions?
    grep -qx f32.o "$dir/made_by_$1"
}
for cc in one other one; do
    check "$cc compiles" runs $cc
    check "$cc compiles the header" made $cc
    check "$cc compiles again" runs $cc
    check "$cc does not compile the header again" sh -c "! grep -qx f32.o '$dir/made_by_$cc'"
done
check "what is missing is shown" grep -qx "part: missing: a program" "$dir/said"
verdict suite
