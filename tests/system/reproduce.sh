#!/bin/sh
# reproduce.sh - the script behind `make reproduce`, with stand-ins for the experiments: it refuses
# what it does not know before anything runs, stops whole, and never passes off what an earlier pass
# left as the result of this one, nor what was compiled otherwise. The experiments themselves:
# tests/system/experiments.sh.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
. tests/checks.sh
unset ONLY QUICK JOBS CFLAGS MAKEFLAGS MFLAGS
BUILD=build
export BUILD
cd "$dir" || exit 1
here=examples/experiments
mkdir -p build $here/16_one $here/17_two

# An experiment that draws the pages named in the file "pages", fails if there is a file "fail", and
# runs for long if there is a file "long".
cat >build/16_one <<'END'
#!/bin/sh
name=$(basename "$0")
out=
for word; do
    [ "$word" != --plan ] ||
        exec echo "$name 2 runs, 1 to do; 60.0 s on one core, 30.0 s to do"
    [ "${last:-}" != --out ] || out=$word
    last=$word
done
echo "$name $*" >>ran
if [ -f long ]; then
    echo $$ >pid
    exec sleep 600
fi
[ ! -f fail ] || exit 1
mkdir -p "$out"
printf '# mode: full\n# data: MNIST 0\n' >"$out/$name.csv"
echo verdicts >"$out/${name}_verdicts.csv"
for page in $(cat pages); do echo "$page" >"$out/$name$page.png"; done
END
cat >build/verdicts <<'END'
#!/bin/sh
[ ! -f no_verdicts ] || exit 1
while [ $# -gt 0 ]; do
    case $1 in
    --out) page=$2 && shift ;;
    --links) ;;
    --into) shift ;;
    --csv) printf 'id,verdict\n16a,%s\n' "$(cat verdict)" >"$2" && shift ;;
    *) tables="${tables:-} $1" ;;
    esac
    shift
done
[ -z "${page:-}" ] || echo "${tables:-}" >"$page"
END
cp build/16_one build/17_two
chmod +x build/*
echo '_b' >pages
echo reproduced >verdict

reproduce() {
    sh "$root/examples/experiments/reproduce.sh" "$@" 16_one 17_two
}
refuses() { # it ends with code 2, says WORD in one line, and nothing runs
    word=$1
    shift
    rm -f ran
    "$@" >said 2>&1
    [ $? -eq 2 ] && [ "$(wc -l <said)" -eq 1 ] && grep -q -- "$word" said && [ ! -f ran ]
}
passes() { # it ends with code 0 and without a word on stderr
    "$@" 2>said >/dev/null && [ ! -s said ]
}
with() { # NAME=VALUE... COMMAND...: a command with this in its environment
    (
        while :; do
            case $1 in *=*) export "${1?}" && shift ;; *) break ;; esac
        done
        "$@"
    )
}
fails() {
    ! "$@" >said 2>&1
}
ran() { # exactly these
    [ "$(cut -d' ' -f1 ran | tr '\n' ' ')" = "$1 " ]
}

check "both run" passes reproduce
check "both ran" ran "16_one 17_two"
check "an unknown number" refuses 99 with ONLY=99 reproduce
check "an unknown number behind a known one" refuses 99 with ONLY="16 99" reproduce
check "an unknown option" refuses --no-such reproduce --no-such
check "JOBS that is no number" refuses two with JOBS=two reproduce
check "JOBS too large" refuses 99999999999999999999 with JOBS=99999999999999999999 reproduce
check "JOBS=0" passes with JOBS=0 reproduce
rm -f ran
check "one alone" passes with ONLY=17 reproduce
check "it ran alone" ran 17_two
check "in earnest" passes with QUICK=0 reproduce
check "without the option --quick" sh -c '! grep -q quick ran'
check "QUICK" passes with QUICK=1 reproduce
check "with the option --quick" grep -q -- --quick ran

# Pages and verdicts of an earlier pass
echo '_a' >pages
check "with another page" passes reproduce
check "the old page is gone" test ! -f build/reproduce/16_one_b.png
check "published" passes reproduce --publish
check "the page is" test -f $here/16_one/16_one_a.png
check "both are in the page of verdicts" grep -q '16_one.*17_two' build/reproduce/verdicts.md
touch fail
check "a failure is told" fails with ONLY=16 reproduce
rm fail
check "by name" grep -q 'FAILED: 16_one' said
check "it leaves no old verdicts" sh -c '! grep -q 16_one build/reproduce/verdicts.md'
check "others stay" grep -q 17_two build/reproduce/verdicts.md
check "nothing to publish" fails reproduce --publish

# The report of a replication
replicate() {
    sh "$root/examples/experiments/replicate.sh" "$@" 16_one 17_two
}
says() { # WORDS: the report does
    grep -q -- "$1" build/replication.md
}
check "run" passes reproduce
check "the tables are those on file" passes replicate 61
check "it says so, and the time" sh -c "grep -q '1 min 1 s' build/replication.md &&
    [ \$(grep -c 'the same |' build/replication.md) -eq 2 ]"
check "the verdicts, too" says 'Each is the one on file'
echo inconclusive >verdict
check "other verdicts" passes replicate 61
check "are named" says '16a: on file reproduced, here inconclusive'
echo reproduced >verdict
sed 's/^# data.*/&\n1,2/' $here/17_two/17_two.csv >build/reproduce/17_two.csv
check "another table fails" fails replicate 61
check "by name" says '17_two .*differs'
rm build/reproduce/17_two.csv
check "no table fails" fails replicate 61
check "run quickly" with QUICK=1 passes reproduce
for name in 16_one 17_two; do
    mv build/reproduce_quick/$name.csv build/reproduce_quick/${name}_quick.csv
done
check "recorded" passes replicate --record
check "the quick tables are on record" with QUICK=1 passes replicate 61
check "run again" passes reproduce

# What a reader has run himself is not what is on file.
echo mine >build/reproduce/17_two_a.png
check "redrawn" passes reproduce --redraw
check "my own page stays" grep -q mine build/reproduce/17_two_a.png
check "the page on file is the table's" grep -q _a $here/17_two/17_two_a.png
touch no_verdicts
check "a page of verdicts that fails" fails reproduce --redraw
rm no_verdicts

# Asked to stop, it stops the program under way and begins no other.
until_true() { # COMMAND...: for some seconds; not every sleep knows fractions
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        if "$@" 2>/dev/null; then return 0; fi
        sleep 0.2 2>/dev/null || sleep 1
    done
}
gone() {
    ! kill -0 "$1"
}
stops() { # SIGNAL
    rm -f pid ran
    sh "$root/examples/experiments/reproduce.sh" 16_one 17_two >/dev/null 2>&1 &
    script=$!
    until_true test -s pid
    kill -s "$1" "$script"
    until_true gone "$script"
    if kill -0 "$script" 2>/dev/null; then # a check that fails must end, too
        kill -s KILL "$script" "$(cat pid)"
        return 1
    fi
    wait "$script" 2>/dev/null
    [ -s pid ] && ! kill -0 "$(cat pid)" 2>/dev/null && ran 16_one
}
ignored() { # SIGNAL: below nohup, say; a shell cannot catch what is ignored from its start
    [ "$(sh -c "kill -s $1 \$\$; echo ignored" 2>/dev/null)" = ignored ]
}
touch long
for signal in TERM HUP; do
    ignored "$signal" || check "SIG$signal stops it whole" stops "$signal"
done

# A program is compiled again for another compiler or other flags, and for no other reason.
cat >cc <<'END'
#!/bin/sh
echo "$*" >>"$COMPILED"
while [ $# -gt 0 ]; do
    [ "$1" != -o ] || : >"$2"
    shift
done
END
cp cc cc2 && chmod +x cc cc2
compiles() { # NUMBER ASSIGNMENTS...: so many files
    : >"$COMPILED"
    many=$1
    shift
    make -s -C "$root" BUILD="$dir/b" STB=/none "$@" "$dir/b/verdicts" &&
        [ "$(wc -l <"$COMPILED")" -eq "$many" ]
}
COMPILED=$dir/compiled
export COMPILED
# the modules, but for those of nrm_real, and the program
files=$(grep -L '"normlayers.h"' "$root"/examples/lab/*.h "$root"/examples/plot/*.h | wc -l)
files=$((files + 2)) # stb_image_write has no header here
check "compiled" compiles $files CC="$dir/cc"
check "up to date" compiles 0 CC="$dir/cc"
check "other flags" compiles $files CC="$dir/cc" CFLAGS=-O0
check "up to date again" compiles 0 CC="$dir/cc" CFLAGS=-O0
check "another compiler" compiles $files CC="$dir/cc2" CFLAGS=-O0

verdict reproduce
