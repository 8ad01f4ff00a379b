# api.awk - the declarations of normlayers.h as JSON (`make api-docs`).
#
# Types come in the order of the header. A parameter has its direction, "by": "+=" if it is added
# to, and the shape that the comment of its line gives: parts divided by ";" belong to the arrays of
# the line one after the other, a part "NAME: ..." to that one, the last shape to all that follow.
# As the header says, an array without a shape has that of the forward pass (dx that of x), of
# layer norm where there is a D, or of batch norm.
function trim(s) { gsub(/[ \t]+/, " ", s); sub(/^ /, "", s); sub(/ $/, "", s); return s }
function fail(what) { print "api.awk: line " FNR ": " what >"/dev/stderr"; failed = 1; exit 1 }

# "const nrm_real *x" -> type_of "const nrm_real *", name_of "x", length_of "" (2 of "*work[2]")
function split_declaration(s,    at) {
    s = trim(s)
    length_of = ""
    if (match(s, /\[[0-9]+\]$/)) {
        length_of = substr(s, RSTART + 1, RLENGTH - 2)
        s = substr(s, 1, RSTART - 1)
    }
    if (!match(s, /[A-Za-z_0-9]+$/)) fail("no name in '" s "'")
    name_of = substr(s, RSTART)
    type_of = trim(substr(s, 1, RSTART - 1))
}
function quoted(key, value) { return "\"" key "\": \"" value "\"" }

# The shapes of the arrays of one line, from its comment.
function read_shapes(f, first, last, comment,    parts, n, i, k, s, shape, named, part) {
    n = split(comment, parts, ";")
    k = first
    for (i = 1; i <= n; i++) {
        part = trim(parts[i])
        s = " " part
        named = ""
        if (match(part, /^[A-Za-z_]+: /)) {
            named = substr(part, 1, RLENGTH - 2)
            if (!((f, named) in index_of)) named = ""
        }
        if (named != "") pending_name[f, named] = part
        shape = ""
        while (match(s, /[^A-Za-z0-9\]](\[[^\]]*\])+( or (\[[^\]]*\])+)?/)) {
            shape = trim(substr(s, RSTART + 1, RLENGTH - 1))
            s = substr(s, RSTART + RLENGTH)
            if (named != "") { shape_of[f, index_of[f, named]] = shape; shape = ""; break }
            while (k <= last && !is_array[f, k]) k++
            if (k <= last) { shape_of[f, k] = shape; part_of[f, k] = part; k++ }
        }
        if (shape == "" && named == "" && i < n) { # it says something else of an array
            while (k <= last && !is_array[f, k]) k++
            if (k <= last) k++
        }
        if (named != "" && index_of[f, named] == k) k++
        if (shape != "") { latest = shape; latest_part = part }
        if (i == n && shape != "")
            for (; k <= last; k++)
                if (is_array[f, k]) { shape_of[f, k] = shape; part_of[f, k] = part }
    }
}
function begin_function(text) {
    sub(/\(.*/, "", text)
    split_declaration(text)
    fun[++functions] = name_of
    returned[functions] = type_of
}
# A line of a prototype, without its comment: whole parameters, for lines end in "," or the end.
function add_parameters(f, code,    list, n, i) {
    n = split(code, list, ",")
    for (i = 1; i <= n; i++) {
        if (trim(list[i]) == "" || trim(list[i]) == "void") continue
        split_declaration(list[i])
        count[f]++
        ptype[f, count[f]] = type_of
        pname[f, count[f]] = name_of
        index_of[f, name_of] = count[f]
        is_array[f, count[f]] = type_of ~ \
            /^(const )?(nrm_real|nrm_acc|int|size_t|unsigned char|nrm_stats|nrm_sums) \*$/
    }
}
function prototype(code, comment,    f, first) {
    if (!inside) {
        sub(/^NRM_DEF /, "", code)
        begin_function(code)
        sub(/^[^(]*\(/, "", code)
        count[functions] = 0
        inside = "function"
    }
    f = functions
    first = count[f] + 1
    if (code ~ /\);/) { sub(/\);.*/, "", code); inside = "" }
    add_parameters(f, code)
    comments[f, ++lines[f]] = comment
    from[f, lines[f]] = first
    upto[f, lines[f]] = count[f]
}
function field(code,    list, n, i, base, args, text) {
    if (match(code, /\(\*[a-z_]+\)\(/)) { # a pointer to a function
        text = trim(code)
        base = trim(substr(text, 1, index(text, "(") - 1))
        sub(/^[^(]*\(\*/, "", text)
        args = text
        sub(/\).*/, "", text)
        sub(/^[^(]*\(/, "", args)
        sub(/\);.*/, "", args)
        fields[types] = fields[types] (fields[types] == "" ? "" : ",\n") "      {" \
            quoted("name", text) ", " quoted("function", base) ",\n        " arguments(args) "}"
        return
    }
    sub(/;.*/, "", code)
    n = split(code, list, ",")
    for (i = 1; i <= n; i++) {
        if (i == 1) {
            split_declaration(list[1])
            base = type_of
            gsub(/ *\*/, "", base)
        } else
            split_declaration(base " " list[i])
        fields[types] = fields[types] (fields[types] == "" ? "" : ",\n") "      {" \
            quoted("name", name_of) ", " quoted("type", type_of) \
            (length_of == "" ? "" : ", \"length\": " length_of) "}"
    }
}
function arguments(text,    list, n, i, out) {
    n = split(text, list, ",")
    for (i = 1; i <= n; i++) {
        split_declaration(list[i])
        out = out (i > 1 ? "," : "") "\n          {" quoted("name", name_of) ", " \
            quoted("type", type_of) "}"
    }
    return "\"parameters\": [" out "]"
}
function direction(f, k,    t, part) {
    t = ptype[f, k]
    part = part_of[f, k] pending_name[f, pname[f, k]]
    if (t !~ /\*/) return ""
    if (t ~ /^const /) return "in"
    if (pname[f, k] ~ /^d(gamma|beta|W|b|v|g)$/) return "in/out\", \"by\": \"+="
    return part ~ /in\/out|\] in: / || (!is_array[f, k] && t !~ /\*\*/) ? "in/out" : "out"
}
function inherited(f, k,    name, stem, forward, model) {
    name = pname[f, k]
    stem = name
    sub(/^d/, "", stem)
    forward = fun[f]
    sub(/_(backward|sums)$/, "_forward", forward)
    if ((forward, name) in by_name) return by_name[forward, name]
    if ((forward, stem) in by_name) return by_name[forward, stem]
    if ((f, "D") in index_of) model = "nrm_layernorm_forward"
    else if ((f, "S") in index_of) model = "nrm_batchnorm_forward"
    else if (fun[f] ~ /fold$/) model = "nrm_batchnorm_forward"
    else return ""
    if (name == "dy") stem = "y"
    if (name == "mask") return "[N][S]"
    if ((model, name) in by_name) return by_name[model, name]
    return (model, stem) in by_name ? by_name[model, stem] : ""
}

/^#endif \/\* NORMLAYERS_H \*\// { exit }
/^#define NRM_VERSION "/ { version = $3; gsub(/"/, "", version) }
/^    X\(NRM_[A-Z]+, -?[0-9]+,/ {
    split($0, item, /[(,]/)
    values["nrm_status"] = values["nrm_status"] (values["nrm_status"] == "" ? "" : ", ") \
        "\"" item[2] "\": " trim(item[3])
}
/^#/ || continued { continued = /\\$/; next }
prose { prose = !/\*\//; next }
!inside && /^ *\/\*/ { prose = !/\*\//; next }
{
    code = $0
    comment = ""
    while (match(code, /\/\*/)) {
        rest = substr(code, RSTART + 2)
        code = substr(code, 1, RSTART - 1)
        stop = index(rest, "*/")
        if (stop == 0) { prose = 1; comment = comment rest; break }
        comment = comment substr(rest, 1, stop - 1)
        code = code substr(rest, stop + 2)
    }
}
inside == "function" || /^NRM_DEF / { prototype(code, comment); next }
/^enum / && /\{/ && !/NRM_STATUS_LIST/ {
    enum = $2
    enums[++enum_count] = enum
    inside = "enum"
    sub(/^[^{]*\{/, "", code)
}
/^enum nrm_status/ { enums[++enum_count] = "nrm_status"; next }
inside == "enum" {
    if (code ~ /\};/) inside = ""
    gsub(/[};]/, "", code)
    n = split(code, item, ",")
    for (i = 1; i <= n; i++)
        if (split(item[i], pair, "=") == 2)
            values[enum] = values[enum] (values[enum] == "" ? "" : ", ") \
                "\"" trim(pair[1]) "\": " trim(pair[2])
    next
}
/^typedef struct NRM_OWN\(/ {
    body = code
    sub(/^[^(]*\(/, "", code)
    sub(/\).*/, "", code)
    type_name[++types] = code
    inside = "struct"
    if (body !~ /\}/) next
    inside = "" # all in one line
    sub(/^[^{]*\{/, "", body)
    sub(/;[^;]*\}.*/, "", body)
    n = split(body, member, ";")
    for (m = 1; m <= n; m++) field(member[m] ";")
    next
}
inside == "struct" && /^\}/ { inside = ""; next }
inside == "struct" { if (code ~ /[^ ]/) field(code); next }
/^typedef [a-z0-9_]+ nrm_[a-z_]+\(/ {
    sub(/^typedef /, "", code)
    args = code
    sub(/^[^(]*\(/, "", args)
    sub(/\);.*/, "", args)
    sub(/\(.*/, "", code)
    split_declaration(code)
    type_name[++types] = name_of
    callback[types] = type_of
    parameters[types] = arguments(args)
}
END {
    if (failed) exit 1
    for (f = 1; f <= functions; f++) {
        for (i = 1; i <= lines[f]; i++)
            if (comments[f, i] != "") read_shapes(f, from[f, i], upto[f, i], comments[f, i])
        for (k = 1; k <= count[f]; k++)
            if ((f, k) in shape_of) by_name[fun[f], pname[f, k]] = shape_of[f, k]
    }
    print "{\n  " quoted("made_by", "tests/bindings/api.awk") ",\n  " quoted("version", version) ","
    print "  \"enums\": {"
    for (i = 1; i <= enum_count; i++) {
        text = "    \"" enums[i] "\": {" values[enums[i]] "}" (i < enum_count ? "," : "")
        while (length(text) > 98) { # at a comma
            cut = 98
            while (substr(text, cut, 2) != ", ") cut--
            print substr(text, 1, cut)
            text = "      " substr(text, cut + 2)
        }
        print text
    }
    print "  },\n  \"types\": ["
    for (i = 1; i <= types; i++)
        print "    {" quoted("name", type_name[i]) ", " \
            (i in callback ? quoted("function", callback[i]) ",\n      " parameters[i] "}" \
                           : "\"fields\": [\n" fields[i] "]}") (i < types ? "," : "")
    print "  ],\n  \"functions\": ["
    for (f = 1; f <= functions; f++) {
        print "    {" quoted("name", fun[f]) ", " quoted("returns", returned[f]) \
            ", \"parameters\": [" (count[f] ? "" : "]}" (f < functions ? "," : ""))
        for (k = 1; k <= count[f]; k++) {
            d = direction(f, k)
            shape = (f, k) in shape_of ? shape_of[f, k] : is_array[f, k] ? inherited(f, k) : ""
            print "      {" quoted("name", pname[f, k]) ", " quoted("type", ptype[f, k]) \
                (d == "" ? "" : ", " quoted("direction", d)) \
                (shape == "" ? "" : (shape ~ / / ? ",\n        " : ", ") \
                               quoted("shape", shape)) "}" \
                (k < count[f] ? "," : "]}" (f < functions ? "," : ""))
        }
    }
    print "  ]\n}"
}
