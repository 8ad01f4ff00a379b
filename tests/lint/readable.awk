# readable.awk - the measurements of readable.sh. Input: the records of extract_tags.awk as "-",
# then the header. Every check is a line; what fails is named below it.

function check(good, what) {
    print (good ? "ok      " : "FAILED  ") what
    if (good) passed++
    else failed++
}
function remember(what) { # a fault, to be named below the line of its check
    faults = faults "    " what "\n"
}
function check_faults(what) {
    check(faults == "", what)
    printf "%s", faults
    faults = ""
}

# ---- what there is -------------------------------------------------------------------------------

# The line without its comments; `commented` remembers one that goes on.
function bare(text,    out, at) {
    out = ""
    for (;;) {
        at = index(text, commented ? "*/" : "/*")
        if (!at) return commented ? out : out text
        if (!commented) out = out substr(text, 1, at - 1)
        text = substr(text, at + 2)
        commented = !commented
    }
}
# The lines that NRM_PLAIN chooses: plain, fast, or of both ("").
function condition(text) {
    if (text ~ /^# *if/) {
        depth++
        mode[depth] = ""
        if (text ~ /^# *if(def| defined\(?) *\(?NRM_PLAIN\)?$/) mode[depth] = "plain"
        if (text ~ /^# *if(ndef| !defined\(?) *\(?NRM_PLAIN\)?$/) mode[depth] = "fast"
    } else if (text ~ /^# *el/ && mode[depth] != "")
        mode[depth] = mode[depth] == "plain" ? "fast" : "plain"
    else if (text ~ /^# *endif/) delete mode[depth--]
}
function now(    k) {
    for (k = depth; k > 0; k--)
        if (mode[k] != "") return mode[k]
    return ""
}
function defined_here(name) {
    if (!(name in first)) first[name] = FNR
}
function begin_function(text) {
    match(text, /nrmi?_[A-Za-z0-9_]+\(/)
    f = ++functions
    name[f] = substr(text, RSTART, RLENGTH - 1)
    from[f] = stated
    chapter_of[f] = chapter
    only[f] = now()
    body[f] = ""
    defined_here(name[f])
    if (stated < first[name[f]]) first[name[f]] = stated
    inside = 1
}
# A line of code at the outermost level: functions, prototypes, structs.
function outermost(text) {
    if (stating == "") stated = FNR
    if (sub(/^NRM_KERNEL\(/, "static void ", text)) sub(/,/, "(", text)
    if (text ~ /^typedef [a-z]+ NRM_OWN\(/) { # the name that the linker sees
        sub(/NRM_OWN\(/, "", text)
        sub(/\)/, "", text)
    }
    stating = stating " " text
    if (text ~ /^typedef struct nrmi_/) {
        struct = text
        sub(/^typedef struct /, "", struct)
        sub(/[^A-Za-z0-9_].*$/, "", struct)
        defined_here(struct)
        if (text ~ /\{/) { fields[struct] = 0; within = 1 }
    }
    if (within) count_fields(text)
    else if (text == "{" && stating ~ /nrmi?_[A-Za-z0-9_]+\(/) {
        begin_function(stating)
        stating = ""
        return
    }
    if (text ~ /;$/ && (!within || text ~ /^\}/)) {
        if (stating ~ /^ NRM_DEF / && !implementation) declare(stating)
        if (stating ~ /^ typedef / && match(stating, /nrmi_[A-Za-z0-9_]+;$/))
            defined_here(substr(stating, RSTART, RLENGTH - 1))
        within = 0
        stating = ""
    }
}
function declare(text) {
    if (!match(text, /nrm_[A-Za-z0-9_]+\(/)) return
    text = substr(text, RSTART, RLENGTH - 1)
    if (!(text in public)) publics++
    public[text] = 1
}
# Declarators: a comma or a semicolon ends each; what stands in brackets does not count.
function count_fields(text) {
    sub(/^.*\{/, "", text)
    if (text ~ /^\}/) return
    while (gsub(/\([^()]*\)/, "", text) || gsub(/\[[^][]*\]/, "", text)) {}
    fields[struct] += gsub(/[,;]/, "", text)
}
FILENAME == "-" {
    split($0, record, "\t")
    at = record[3]
    sub(/^.*:/, "", at)
    if (record[1] == "define" && record[4] == "computed") {
        equation[++equations] = record[2]
        stands[equations] = at + 0
    }
    if (record[1] == "compute") computed[record[2]] = computed[record[2]] " " at
    next
}
{ bytes += length($0) + 1 }
/^#define NRM_IMPLEMENTED/ { implementation = 1 }
/^\/\*$/ { prose = 1; stating = "" }
prose && /^## [0-9]+ / {
    chapter = $2 + 0
    title[chapter] = $0
    sub(/^## +/, "", title[chapter])
}
chapter { length_of[chapter]++; if (chapter > last_chapter) last_chapter = chapter }
{ in_chapter[FNR] = chapter + 0 }
/^\*\/$/ { prose = 0; next }
prose { next }
{
    code[FNR] = 1
    raw[FNR] = $0
    text = bare($0)
    sub(/ +$/, "", text)
    bared[FNR] = text
    if (text ~ /^ *$/) next
}
macro != "" || text ~ /^#/ { # with its further lines
    preprocessor[FNR] = 1
    condition(text)
    if (text ~ /^# *define /) {
        macro = text
        sub(/^# *define +/, "", macro)
        sub(/[^A-Za-z0-9_].*$/, "", macro)
        if (implementation) {
            defined_here(macro)
            means[macro] = ""
        }
    }
    if (macro in means) means[macro] = means[macro] " " text
    if (text !~ /\\$/) macro = ""
    next
}
inside {
    inner[FNR] = f
    body[f] = body[f] " " text
    if (text == "}") {
        to[f] = FNR
        inside = 0
    }
    next
}
{ outermost(text) }

# ---- what is measured ----------------------------------------------------------------------------

function sort(a, n,    i, j, v) {
    for (i = 2; i <= n; i++) {
        v = a[i]
        for (j = i - 1; j > 0 && a[j] > v; j--) a[j + 1] = a[j]
        a[j + 1] = v
    }
}
function median(a, n) {
    sort(a, n)
    return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
}
# Lines from an equation to the first line after it that computes it, else to the last before it.
function distance(i,    places, n, k, best) {
    n = split(computed[equation[i]], places, " ")
    best = -1
    for (k = 1; k <= n; k++)
        if (places[k] > stands[i]) return places[k] - stands[i]
        else best = stands[i] - places[k]
    return best
}
function distances(    c, i, n, all, d, here, whole, farthest, largest) {
    for (c = 1; c <= 13; c++) {
        n = farthest = 0
        for (i = 1; i <= equations; i++) {
            if (in_chapter[stands[i]] != c) continue
            d = distance(i)
            if (d < 0 || d > 60)
                remember(equation[i] " at line " stands[i] ": " \
                    (d < 0 ? "no line computes it" : d " lines to the line that computes it"))
            if (d < 0) continue
            here[++n] = whole[++all] = d
            if (d >= farthest) { farthest = d; largest = equation[i] }
        }
        if (n || faults != "")
            check_faults("chapter " c ": " n + 0 " equations, from one to its line " \
                (n ? median(here, n) : "?") " lines (median), at most " farthest " (" largest ")")
    }
    d = all ? median(whole, all) : 999
    check(d <= 25, "from an equation to its line: " d " lines (median of " all + 0 "), limit 25")
}
function lengths(    i, n, longest, most, s, c) {
    longest = 0
    for (i = 1; i <= functions; i++) {
        n = to[i] - from[i] + 1
        if (n > 50) remember(name[i] ": " n " lines")
        if (n > longest) { longest = n; most = name[i] }
    }
    check_faults("functions: " functions + 0 ", the longest, " most ", has " longest \
        " lines, limit 50")
    n = longest = 0
    for (s in fields) {
        n++
        if (fields[s] > 8) remember(s ": " fields[s] " fields")
        if (fields[s] > longest) { longest = fields[s]; most = s }
    }
    check_faults("structs nrmi_*: " n ", the largest, " most ", has " longest " fields, limit 8")
    longest = 0
    for (c = 1; c <= last_chapter; c++) {
        if (length_of[c] > (title[c] ~ /[Pp]erceptron|MLP|[Nn]etwork/ ? 495 : 340))
            remember(title[c] ": " length_of[c] " lines")
        if (length_of[c] > longest) { longest = length_of[c]; most = title[c] }
    }
    check_faults("chapters: the longest, " most ", has " longest \
        " lines, limit 340, for the perceptron 495")
    check(FNR <= 5200, "the header has " FNR " lines, limit 5200")
    check(bytes <= 247500, "the header has " bytes " bytes, limit 247500")
}
# Words that a part's code, with its comments, does not mention.
function layering(    i, c, word, text, used, id) {
    for (i = 1; i <= FNR; i++) {
        c = in_chapter[i]
        if (!code[i] || c < 1 || c > 20) continue
        text = " " raw[i] " "
        word = c <= 13 ? "nrmi_vec|NRM_VEC|PREFETCH|LANES|prefetch|[^a-z]dense" : \
            "NRM_TRAIN|NRM_INFER|running|sync|[^A-Za-z0-9_]eps[^A-Za-z0-9_]"
        if (match(text, word)) {
            word = substr(text, RSTART, RLENGTH)
            gsub(/[^A-Za-z_]/, "", word)
            if (word == "eps" && c == 14 && raw[i] ~ /nrmi_check_eps\(/) continue
            if (word == "eps" && c == 14 && name[inner[i] + 0] == "nrmi_check_eps") continue
            if (c <= 13) machine = machine "    line " i ", chapter " c ": " word "\n"
            else layers = layers "    line " i ", chapter " c ": " word "\n"
        }
    }
    faults = machine
    check_faults("Part I, code: no vectors, prefetch, lanes, dense")
    faults = layers
    check_faults("Part II, code: no modes, running statistics, eps, sync")
    for (i = 1; i <= FNR; i++) {
        if (in_chapter[i] < 1 || in_chapter[i] > 13 || preprocessor[i]) continue
        text = bared[i]
        while (match(text, /nrmi_[A-Za-z0-9_]+/)) {
            id = substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH)
            if (id in before || id in used || first[id] + 0 > 0 && first[id] <= i) continue
            used[id] = 1
            remember(id " is used in line " i ", chapter " in_chapter[i] ", and defined in " \
                (id in first ? "line " first[id] : "none"))
        }
    }
    check_faults("Part I: each chapter uses what stands before it")
}

# Functions that f calls, itself or by way of macros, into calls[f]: names between blanks.
function collect(text, f, kind,    id, g) {
    while (match(text, /[A-Za-z_][A-Za-z0-9_]*/)) {
        id = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (id in means && !((kind, f, id) in expanded)) {
            expanded[kind, f, id] = 1
            collect(means[id], f, kind)
        }
        g = number[kind, id]
        if (g && g != f && index(calls[f], " " g " ") == 0) calls[f] = calls[f] " " g " "
    }
}
function deep(f,    list, n, k, d, most) { # calls in the longest chain from here
    if (f in deepest) return deepest[f]
    deepest[f] = 0 # (where functions call each other)
    n = split(calls[f], list, " ")
    for (k = 1; k <= n; k++) {
        d = 1 + deep(list[k])
        if (d > most) { most = d; next_of[f] = list[k] }
    }
    return deepest[f] = most + 0
}
function reach(root, kind,    f, g, queue, seen, head, tail, n, list, k, lines, d, chain) {
    split("", calls); split("", deepest); split("", next_of)
    for (f = 1; f <= functions; f++)
        if (only[f] == "" || only[f] == kind)
            if (!((kind, name[f]) in number)) number[kind, name[f]] = f
    f = number[kind, root]
    if (!f) {
        check(0, root " is not defined")
        return
    }
    queue[tail = 1] = f
    seen[f] = 1
    for (head = 1; head <= tail; head++) {
        f = queue[head]
        lines += to[f] - from[f] + 1
        collect(body[f], f, kind)
        n = split(calls[f], list, " ")
        for (k = 1; k <= n; k++)
            if (!(list[k] in seen)) { seen[list[k]] = 1; queue[++tail] = list[k] }
    }
    d = deep(queue[1])
    chain = name[queue[1]]
    for (f = queue[1]; f in next_of; f = next_of[f]) chain = chain " > " name[next_of[f]]
    if (tail > 25) remember(tail " functions, limit 25")
    if (lines > 350) remember(lines " lines, limit 350")
    if (d > 4) remember("calls " d " deep, limit 4: " chain)
    if (faults != "" && verbose)
        for (head = 1; head <= tail; head++)
            remember(name[queue[head]] ", " to[queue[head]] - from[queue[head]] + 1 " lines")
    check_faults(root ", " kind ": reaches " tail " functions of " lines " lines, " d " calls deep")
}
END {
    for (i = 1; i <= FNR && !in_chapter[i]; i++) { # before the first chapter all may be declared
        text = bared[i]
        while (match(text, /nrmi_[A-Za-z0-9_]+/)) {
            before[substr(text, RSTART, RLENGTH)] = 1
            text = substr(text, RSTART + RLENGTH)
        }
    }
    distances()
    lengths()
    layering()
    check(publics <= 50 && publics > 0, "public functions: " publics + 0 ", limit 50")
    if (verbose)
        for (name_of in public) print "    " name_of
    reach("nrm_batchnorm_forward", "fast")
    reach("nrm_batchnorm_forward", "plain")
    printf "readable: %d passed, %d failed\n", passed, failed
    exit failed > 0
}
