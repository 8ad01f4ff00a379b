#!/bin/sh
# The characters of the repository. Source is read by people with every font and by compilers with
# every code page, so:
#
#   - valid UTF-8, no tab outside a Makefile, no carriage return, no byte order mark, no other
#     control character, and none of the invisible ones that make text read otherwise than it
#     compiles (zero-width characters, bidirectional controls, soft hyphens);
#   - in normlayers.h only the characters of the first list, and only inside block comments, never
#     next to the end of one;
#   - in all other text also those of the second list; anything at all in the files whose
#     subject is the drawing of letters;
#   - at most 100 columns, counted in characters. Tables, headings and links of Markdown may be
#     longer, for they cannot be broken.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh
LC_ALL=C # bytes, whatever the user's locale
export LC_ALL

header_list='± ² ³ · ¹ ½ × ą ̂ β γ δ ε η θ κ μ ρ σ ᵀ ᵗ ᵢ ₛ … ′ ″ ‴ ⁴ ⁵ ⁶ ⁷ ⁸ ⁹ ⁻ ₀ ₁ ₂ ₃ ₄ ₅ ₆ ₇ ₈ ₊
ₖ ₙ ℓ ← ∂ ∑ − √ ∞ ≠ ≤ ≥ ⊕ ⌈ ⌉ ⌊ ⌋ ⟨ ⟩ ⱼ'
other_list='÷ ° § – — ‖ ‘ ’ “ ” • → ↑ ↓ ∇ ∈ ∏ ∘ ∝ ∫ ∼ ≈ ≡ ≪ ≫ ⊙ ⊤ ⋅ ✓ ✗ ⁰ ⁺ ⁿ
ᵏ ᵖ ₉ ₘ ₜ ⅓ ¼ ¾ é è ö ü ä ñ ø ł α ζ ι λ ν ξ π τ φ χ ψ ω ϕ ϵ Γ Δ Θ Λ Ξ Π Σ Φ Ψ Ω ℝ'

cat >"$dir/check.awk" <<'END'
# One file. Variables: list (allowed characters, or "*"), tabs, columns, comments_only.
BEGIN {
    count = split(list, item, /[ \n]+/)
    for (i = 1; i <= count; i++) allowed[item[i]] = 1
    lead = "[\302-\364][\200-\277]+"
}
function complain(what) { printf "%s:%d: %s\n", name, FNR, what }
# Is the multi-byte character c one that cannot be seen?
function invisible(c) {
    return c ~ /^\302[\200-\237\255]$/ || c ~ /^\342\200[\213-\217\252-\256]$/ ||
        c ~ /^\342\201[\240-\257]$/ || c ~ /^\357\273\277$/ || c ~ /^\342\200[\250\251]$/
}
# Outside block comments, a state machine for C: removes comments, remembers being inside one.
function code_of(line,   out, p, q) {
    out = ""
    while (line != "") {
        if (inside) {
            p = index(line, "*/")
            if (p == 0) return out
            line = substr(line, p + 2)
            inside = 0
        }
        p = index(line, "/*")
        if (p == 0) return out line
        out = out substr(line, 1, p - 1)
        line = substr(line, p + 2)
        inside = 1
    }
    return out
}
{
    text = $0
    if (!tabs && text ~ /\t/) complain("tab")
    if (text ~ /[\001-\010\013-\037\177]/) complain("control character")
    rest = text
    plain = ""
    while (match(rest, lead)) {
        c = substr(rest, RSTART, RLENGTH)
        plain = plain substr(rest, 1, RSTART - 1) "?"
        # a match can hold only one character: its first byte says how many follow
        size = c ~ /^[\302-\337]/ ? 2 : c ~ /^[\340-\357]/ ? 3 : 4
        if (length(c) < size) complain("invalid UTF-8")
        c = substr(c, 1, size)
        rest = substr(rest, RSTART + size)
        if (invisible(c)) complain("invisible character")
        else if (!("*" in allowed) && !(c in allowed)) complain("character not on the list: " c)
    }
    plain = plain rest
    if (plain ~ /[\200-\377]/) complain("invalid UTF-8")
    wide = length(plain)
    # a combining accent takes no column
    wide -= gsub(/\314[\200-\277]|\315[\200-\257]/, "", text)
    unbreakable = markdown && text ~ /^ *[|<#]|https?:|\]\(/
    if (columns && wide > columns && !unbreakable) complain(wide " columns")
    if (comments_only) {
        if ($0 ~ /[\200-\377] ?\*\//) complain("character at the end of a comment")
        if (code_of($0) ~ /[\200-\377]/) complain("character outside block comments")
    }
}
END

if ! git ls-files >"$dir/files" 2>/dev/null; then
    echo "charset: not a git checkout, nothing to look at"
    echo "charset: 0 passed, 0 failed"
    exit 0
fi
while read -r file; do
    [ -f "$file" ] || continue
    list="$header_list $other_list" tabs=0 columns=100 comments_only=0 markdown=0
    case $file in
    *.png | *.npz | *.html | docs/book/* | *.ttf | *.woff* | *.idx* | *lock*.json) continue ;;
    LICENSE | *.svg | tests/analyse/reviewed.txt | tests/suite.txt) columns=0 ;; # two tables
    *Makefile | *.mk | *.tsv) tabs=1 ;;
    *.csv | tests/fuzz/corpus/* | tests/expected/torch_*) columns=0 ;;
    *.md) markdown=1 ;;
    normlayers.h) list=$header_list comments_only=1 ;;
    examples/plot/stroke_font.[ch] | tests/tools/test_stroke_font.c) list='*' ;;
    tests/tools/test_plot.c | tests/lint/charset.sh) list='*' ;;
    esac
    awk -v name="$file" -v list="$(echo "$list" | tr '\n' ' ')" -v tabs=$tabs \
        -v columns=$columns \
        -v comments_only=$comments_only -v markdown=$markdown \
        -f "$dir/check.awk" "$file" >"$dir/log"
    if [ -s "$dir/log" ]; then fail "$file"; else pass; fi
done <"$dir/files"

# The check must be able to fail: one line for each thing it looks for.
printf 'a\tb\n' >"$dir/1"
printf 'a\342\200\213b\n' >"$dir/2"
printf 'int x; // \316\262\n' >"$dir/3"
printf '/* \342\202\254 */\n' >"$dir/4"
printf '%0101d\n' 0 >"$dir/5"
printf 'a\377b\n' >"$dir/6"
printf 'a\342\200b\n' >"$dir/7"
printf 'a\342\200\256b\n' >"$dir/8"
printf '/* \316\262*/\n' >"$dir/9"
for bad in 1 2 3 4 5 6 7 8 9; do
    awk -v name=bad -v list="$(echo "$header_list" | tr '\n' ' ')" -v tabs=0 -v columns=100 \
        -v comments_only=1 -v markdown=0 -f "$dir/check.awk" "$dir/$bad" >"$dir/found"
    check "the check itself finds case $bad" test -s "$dir/found"
done
verdict charset
