#!/bin/sh
# Every mutant that docs/12_exercises.md names is in the list, every question has one answer, and
# they are numbered without gaps. And the list and the killers speak of the same mutants, and these
# are about equations that there are.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh
LC_ALL=C
export LC_ALL
page=docs/12_exercises.md
awk -f tests/mutants/entries.awk tests/mutants/list.txt >"$dir/mutants"
list=$dir/mutants
killers=tests/mutants/killers.txt

# Every name that begins like a mutant is one, but for names of files.
known() { # page
    awk '
    FNR == NR {
        if ($1 == "mutant") { id[$2] = 1; sub(/-.*/, "", $2); family[$2] = 1 }
        next
    }
    {
        while (match($0, /[`A-Za-z0-9_.-][a-z0-9_.]*-[a-z0-9-]+/)) {
            name = substr($0, RSTART, RLENGTH)
            $0 = substr($0, RSTART + RLENGTH)
            quoted = sub(/^`/, "", name)
            head = name
            sub(/-.*/, "", head)
            if (quoted && head in family && !(name in id)) {
                print FILENAME ":" FNR ": no mutant is called " name
                bad = 1
            }
        }
    }
    END { exit bad }' "$list" "$1"
}

numbered() { # page: **1.** **2.** ... each followed by one answer
    awk '
    function complain(what) { print FILENAME ":" FNR ": " what; bad = 1 }
    /^\*\*[0-9]+\.\*\* / {
        if ($1 != "**" last + 1 ".**") complain("expected question " last + 1)
        if (last > 0 && answers != 1) complain("question " last " has " answers + 0 " answers")
        last++
        answers = 0
    }
    /^<details><summary>Answer<\/summary>$/ { if (open) complain("answer in an answer"); open = 1 }
    /^<\/details>$/ { if (!open) complain("no answer ends here"); open = 0; answers++ }
    END {
        if (answers != 1 || open) complain("question " last " has no answer")
        if (last < 20) complain("only " last + 0 " questions")
        exit bad
    }' "$1"
}

same_mutants() {
    awk '$1 == "mutant" { print $2 }' "$list" | sort >"$dir/list"
    sed 's/^[^ ].*  / /' "$killers" | tr -s ' ' '\n' | sed '/^$/d' | sort >"$dir/killers"
    diff "$dir/list" "$dir/killers"
}

# What a mutant is about are equations that there are.
about_equations() { # list
    awk '
    /^\| [A-Z]+\.[0-9]+[a-z]? \| / { known[$2] = 1 }
    FILENAME ~ /\.md$/ { next }
    $1 == "mutant" { id = $2 }
    $1 == "about" {
        while (match($0, /[A-Z][A-Z]+\.[0-9]+[a-z]?/)) {
            tag = substr($0, RSTART, RLENGTH)
            $0 = substr($0, RSTART + RLENGTH)
            if (tag in known) continue
            print FILENAME ":" FNR ": " id " is about " tag ", which is no equation"
            bad = 1
        }
    }
    END { exit bad }' docs/equations.md "$1"
}

check "the mutants of the page are in the list" known "$page"
check "questions and answers" numbered "$page"
check "list and killers go together" same_mutants
check "mutants are about equations" about_equations "$list"

# It must be able to fail.
fails() { ! "$@" >/dev/null; }
sed 's/`ln-drop-mean-g`/`ln-drop-mean-h`/' "$page" >"$dir/1"
sed 's/^\*\*7\.\*\*/**8.**/' "$page" >"$dir/2"
awk '/^<\/details>$/ && !done { done = 1; next } { print }' "$page" >"$dir/3"
sed 's/^about BN.19/about BN.91/' "$list" >"$dir/4"
check "a wrong mutant is seen" fails known "$dir/1"
check "a wrong number is seen" fails numbered "$dir/2"
check "a missing answer is seen" fails numbered "$dir/3"
check "a mutant about nothing is seen" fails about_equations "$dir/4"
verdict exercises
