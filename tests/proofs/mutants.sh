# mutants.sh - part of prove.sh, in the folder with the compiled files: no wrong statement of
# mutants.txt may be provable by the proof of the right one.
#
# A wrong statement has to be a statement: Coq must take it without a proof. The right one, in the
# same place, has to go through. Else the failure would say nothing.
list=$PWD/mutants.entries
awk -f "$root/tests/mutants/entries.awk" "$root/tests/proofs/mutants.txt" >"$list"
mutated=
for file in $files; do
    names=$(sed -n 's/^Theorem \([^ :]*\).*/\1/p' "$file")
    for name in $names; do
        if grep -q "^about $name\$" "$list"; then
            mutated="$mutated $file"
            break
        fi
    done
done
for file in $mutated; do
    {
        {
            echo 'Set Silent. Set Default Timeout 5.'
            awk -f "$root/tests/proofs/mutants.awk" "$list" "$file"
        } 2>"${file%.v}.rotten" | coqtop -q -w none >"${file%.v}.tried" 2>&1
    } &
    running=$((${running:-0} + 1))
    [ $((running % JOBS)) -ne 0 ] || wait
done
wait
cat ./*.rotten
sed 's/^\(.* < \)*//' ./*.tried | grep -x '[A-Za-z_0-9]*' | sort -u >accepted
for name in $(sed -n 's/^about //p' "$list" | sort -u); do
    grep -q -x "${name}_itself" accepted || fail "$name itself is not proved where its mutants are"
done
for id in $(sed -n 's/^mutant //p' "$list"); do
    if ! grep -q -x "${id}_stated" accepted; then
        fail "mutant $id is not a statement, or its theorem is not there"
    elif grep -q -x "$id" accepted; then
        fail "mutant $id can be proved"
    else
        pass
    fi
done
[ "$(grep -c '^mutant ' "$list")" -ge 60 ] || fail "fewer than 60 mutants"
