# ascii.awk - the header in ASCII, for compilers that read source in a code page of their own.
#
#   awk -f docs/weave/ascii.awk normlayers.h        (in the C locale: LC_ALL=C)
#
# Everything beyond ASCII stands in comments, so the twin compiles to the same program, line for
# line. Letters get their names, signs their usual spelling: x̂ᵢ = (xᵢ − μ)·r reads
# xhat_i = (x_i - mu)*r.

# Runs of raised or lowered characters get one mark: x⁻¹ is x^-1, aᵢ₁ is a_i1.
function shift(line, mark, from, to,    count, a, b, i) {
    count = split(from, a, " ")
    split(to, b, " ")
    for (i = 1; i <= count; i++) gsub(a[i], "\001" b[i] "\002", line)
    gsub(/\002\001/, "", line)
    gsub(/\001/, mark, line)
    gsub(/\002/, "", line)
    return line
}
function names(line, from, to,    count, a, b, i) {
    count = split(from, a, " ")
    split(to, b, " ")
    for (i = 1; i <= count; i++) gsub(a[i], b[i], line)
    return line
}
# √v is sqrt(v), √(v + ε) and √⟨a⟩ have their brackets already.
function roots(line,    out) {
    out = ""
    while (match(line, /√([A-Za-z0-9]+|[\300-\341\343-\377][\200-\277]+)/)) {
        out = out substr(line, 1, RSTART - 1) "sqrt("
        out = out substr(line, RSTART + length("√"), RLENGTH - length("√")) ")"
        line = substr(line, RSTART + RLENGTH)
    }
    out = out line
    gsub(/√/, "sqrt", out)
    return out
}
function ascii(line) {
    line = roots(line)
    line = names(line, "ⱼ₊L ⱼ₊₂L ⱼ₊ₖ", "_(j+L) _(j+2L) _(j+k)")
    gsub(/∑ /, "sum of ", line)
    line = shift(line, "_", "ᵢ ⱼ ₖ ₙ ₛ ₀ ₁ ₂ ₃ ₄ ₅ ₆ ₇ ₈ ₊", "i j k n s 0 1 2 3 4 5 6 7 8 +")
    line = shift(line, "^", "¹ ² ³ ⁴ ⁵ ⁶ ⁷ ⁸ ⁹ ⁻ ᵀ ᵗ", "1 2 3 4 5 6 7 8 9 - T t")
    line = names(line, "β γ δ ε η θ κ μ ρ σ ∂ ∑ ∞ ℓ ą",
        "beta gamma delta eps eta theta kappa mu rho sigma d sum inf l a")
    line = names(line, "̂ · × − ± ½ ′ ″ ‴ … ← ≠ ≤ ≥ ⊕ ⟨ ⟩ ⌊ ⌋ ⌈ ⌉",
        "hat * x - +- 1/2 ' '' ''' ... <- != <= >= xor < > floor( ) ceil( )")
    return line
}
/[\200-\377]/ {
    # tags stay in their column, where there is room
    if (match($0, /  +[[(][A-Z]+\.[0-9]+[])]$/)) {
        tag = substr($0, RSTART)
        text = ascii(substr($0, 1, RSTART - 1))
        sub(/^ +/, "", tag)
        line = substr($0, 1, length($0) - length(tag))
        gsub(/̂/, "", line) # a hat takes no column, any other character one
        gsub(/[\300-\377][\200-\277]*/, "x", line)
        room = length(line) - length(text)
        # not "%*s", which busybox does not know
        $0 = text sprintf("%" (room > 2 ? room : 2) "s", "") tag
    } else {
        $0 = ascii($0)
    }
}
{ print }
