# mutants.awk - a file of theorems with wrong statements put in, as input for coqtop.
#
#   awk -f mutants.awk MUTANTS FILE.v      (of tests/mutants/entries.awk)
#
# Before each theorem that has mutants stand: the statement as it is, with its proof (ID_itself);
# each wrong statement without a proof (ID_stated, Admitted); and each with the theorem's own proof
# (ID). coqtop goes on after an error, so what has become of them is asked at the end of each.
FNR == 1 { file++ }
file == 1 {
    if ($1 == "mutant") id = $2
    else if ($1 == "about") { of[$2] = of[$2] " " id; theorem[id] = $2 }
    else if ($0 ~ /^- /) old[id] = substr($0, 3)
    else if ($0 ~ /^\+ /) new[id] = substr($0, 3)
    next
}
/^(Theorem|Lemma) / {
    name = $2
    sub(/:$/, "", name)
    statement = proof = ""
    part = 1
}
part {
    if ($0 ~ /^Proof\./) part = 2
    if (part == 1) statement = statement $0 "\n"
    else proof = proof $0 "\n"
    if (part == 2 && $0 ~ /Qed\.$/) { finish(); part = 0 }
    next
}
{ print }
function finish(    i, n, ids, where, wrong) {
    n = split(of[name], ids, " ")
    if (n) try(name "_itself", statement)
    for (i = 1; i <= n; i++) {
        where = index(statement, old[ids[i]])
        wrong = substr(statement, where + length(old[ids[i]]))
        if (!where || index(wrong, old[ids[i]])) {
            print "Check (* " ids[i] ": the old text is not there once *) tt."
            print ids[i] ": not once in the statement" >"/dev/stderr"
            continue
        }
        wrong = substr(statement, 1, where - 1) new[ids[i]] wrong
        print renamed(wrong, ids[i] "_stated") "Admitted.\nCheck " ids[i] "_stated."
        try(ids[i], wrong)
    }
    printf "%s%s", statement, proof
}
function renamed(text, as) {
    sub(/^(Theorem|Lemma) [^ :]*/, "Theorem " as, text)
    return text
}
function try(as, text) {
    printf "%s%sAbort.\nCheck %s.\n", renamed(text, as), proof, as
}
