# suite.sh - what scripts ask of suite.txt; to be sourced from the root of the project.

# row PROGRAM COLUMN: what the table says of layers/test_mlp, by its whole name or as mlp.
row() {
    awk -v name="$1" -v column="$2" '{ short = $1; sub(/.*\/(test_)?/, "", short) }
        $1 == name || short == name || "test_" short == name { print $column; exit }' \
        tests/suite.txt
}

# variants COLUMN: each program with each of its variants in that run, as layers/test_mlp.f64.
variants() {
    awk -v column="$1" '/^#/ || $column == "-" { next }
        { n = split($column, of, ","); for (i = 1; i <= n; i++) print $1 "." of[i] }' \
        tests/suite.txt
}

# What a variant is compiled with.
defines() {
    case $1 in
    *.f64 | *.threads) echo -DNRM_DOUBLE ;;
    *.acc32) echo -DNRM_ACC=float ;;
    *.plain) echo -DNRM_PLAIN -DNRM_DOUBLE ;;
    *.plain32) echo -DNRM_PLAIN ;;
    *.small) echo -DNRM_PLAIN -DNRM_ACC=float ;;
    esac
}
