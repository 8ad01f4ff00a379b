# layers.awk - the table of layers.c as Markdown: a table for each of the two norms, one for all
# other layers, and one for the rest of the norms. A cell is the time of a call and the percentage
# of the one-pass limit. The table "slower" has the cases in which the header is beaten.
#
#   LC_ALL=C awk [-v tables="batchnorm layernorm other"] -f layers.awk build/bench/layers.csv

BEGIN {
    FS = ","
    titles["batchnorm"] = "Batch norm"; titles["layernorm"] = "Layer norm"
    titles["other"] = "Other layers"; titles["family"] = "The other norms"
    if (tables == "") tables = "batchnorm layernorm other family"
    split("groupnorm instancenorm rmsnorm l1norm linfnorm sync weightnorm", family, " ")
    for (k in family) in_family[family[k]] = 1
    label["batchnorm"] = "batch norm"; label["layernorm"] = "layer norm"
    label["groupnorm"] = "group norm"; label["instancenorm"] = "instance norm"
    label["rmsnorm"] = "RMS norm"; label["weightnorm"] = "weight norm"
    label["l1norm"] = "L1 batch norm"; label["linfnorm"] = "L∞ batch norm"
    label["sync"] = "synchronised batch norm"
    heads["ours"] = "ours, -O3 -march=native"; heads["ours-O3"] = "ours, -O3"
    heads["ours-O2"] = "ours, -O2"; heads["one-pass"] = "plain C, one pass"
    heads["three-pass"] = "plain C, three passes"; heads["ggml-way"] = "the way of ggml"
    heads["pytorch"] = "PyTorch"; heads["onednn"] = "oneDNN"; heads["limit"] = "one-pass limit"
}

/^# / {
    split(substr($0, 3), note, ": ")
    about[note[1]] = substr($0, length(note[1]) + 5)
    next
}

{ gsub(/"/, "") } # "inf" is quoted, so that it is no number

!columns { for (columns = 1; columns <= NF; columns++) at[$columns] = columns; next }

{
    name = $at["case"]
    who = $at["contestant"]
    if (!(name in layer)) {
        order[++cases] = name
        layer[name] = $at["layer"]
        size[name] = $at["size"]
        gsub(/x/, "×", size[name])
        if (sub(/g/, ", ", size[name])) size[name] = size[name] " groups"
        pass[name] = $at["pass"]
    }
    if (!(who in seen)) { seen[who] = 1; contestant[++contestants] = who }
    cell[name, who] = $at["status"] != "ok" ? "wrong" : time($at["seconds"]) \
        (who == "limit" ? "" : sprintf(" (%.0f %%)", $at["percent_of_limit"]))
    if ($at["status"] == "ok") {
        times[name, who] = ratio($at["times_ours"])
        seconds_of[name, who] = $at["seconds"]
    }
    has[group_of(name), who] = 1
}

# Three digits and a unit.
function time(seconds,   v, unit) {
    v = 1e6 * seconds; unit = "μs"
    if (v >= 1000) { v /= 1000; unit = "ms" }
    return sprintf(v < 10 ? "%.2f %s" : v < 100 ? "%.1f %s" : "%.0f %s", v, unit)
}

function ratio(v) { return sprintf(v < 1 ? "%.2f" : v < 100 ? "%.1f" : "%.0f", v) }

function group_of(name) {
    return layer[name] in titles ? layer[name] : layer[name] in in_family ? "family" : "other"
}

function label_of(which) { return which in label ? label[which] : which }

function is_peer(who) { return who == "pytorch" || who == "onednn" }

# The contestants that have a cell in a table are its columns; the peers have another one.
function row(start, which, cells, ratios,   k, who, line) {
    line = start
    for (k = 1; k <= contestants; k++)
        if ((which, contestant[k]) in has) line = line cells[k]
    for (k = 1; k <= contestants; k++)
        if ((which, contestant[k]) in has && is_peer(contestant[k])) line = line ratios[k]
    print line
}

function table(which,   i, k, name, other, who, start) {
    if (!((which, contestant[1]) in has)) return
    other = which == "other" || which == "family"
    printf "\n**%s**\n\n", titles[which]
    for (k = 1; k <= contestants; k++) {
        first[k] = " " heads[contestant[k]] " |"
        second[k] = " " heads[contestant[k]] " / ours |"
        rule[k] = "---|"
    }
    row((other ? "| layer " : "") "| size | pass |", which, first, second)
    row((other ? "|---" : "") "|---|---|", which, rule, rule)
    for (i = 1; i <= cases; i++) {
        name = order[i]
        if (group_of(name) != which) continue
        for (k = 1; k <= contestants; k++) {
            who = contestant[k]
            first[k] = " " ((name, who) in cell ? cell[name, who] : "–") " |"
            second[k] = " " ((name, who) in times ? times[name, who] : "–") " |"
        }
        start = (other ? "| " label_of(layer[name]) " " : "") "| " size[name] " | " pass[name] " |"
        row(start, which, first, second)
    }
}

# The cases that `who` has in common with a build of the header, those in which it takes less time,
# and its part of the header's time there, layer by layer.
function beaten(who, build,   i, name, part, all, fewer, line, last) {
    for (i = 1; i <= cases; i++) {
        name = order[i]
        if (!((name, who) in seconds_of) || !((name, build) in seconds_of)) continue
        all++
        part = build == "ours" ? times[name, who] : \
            ratio(seconds_of[name, who] / seconds_of[name, build])
        if (part >= 1) continue
        fewer++
        line = line (line == "" ? "" : layer[name] == last ? ", " : "; ") \
            (layer[name] == last ? "" : "**" label_of(layer[name]) "** ") \
            size[name] " " pass[name] " " part
        last = layer[name]
    }
    if (all) printf "| %s | `%s` | %d of %d | %s |\n", heads[who], \
        substr(heads[build], 7), fewer, all, line == "" ? "–" : line
}

function slower(   k) {
    print "| faster than the header | header built with | in |" \
        " cases, and its time over the header's |\n|---|---|---|---|"
    for (k = 1; k <= contestants; k++)
        if (contestant[k] !~ /^(limit|ours)/) beaten(contestant[k], "ours")
    for (k = 1; k <= contestants; k++)
        if (is_peer(contestant[k])) beaten(contestant[k], "ours-O2")
}

END {
    if (tables == "slower") { slower(); exit }
    printf "normlayers.h %s on %s,\n%s, one thread; medians of %s rounds.\n", about["version"],
        about["processor"], about["compiler"], about["rounds"]
    n = split(tables, which_of, " ")
    for (t = 1; t <= n; t++) table(which_of[t])
}
