# mnist.awk - the lines of mnist.c and mnist.py as a table on the terminal, as CSV and as Markdown.
#
#   normlayers|pytorch WIDTHS BATCH NORM epoch E seconds S loss L accuracy A
#
# Variables: csv, markdown (files to write); version, compiler, cpu, torch, settings, rounds.

{
    net = $2 " " $3 " " $4
    if (!(net in known)) { known[net] = 1; order[++nets] = net }
    key = net " " $1
    seconds[key, ++count[key]] = $8
    last = $6
    loss[key, last] += $10
    accuracy[key, last] += $12
    runs[key, last]++
    if (last > final[key]) final[key] = last
}

function sort_and_take(a, n,   i, j, t) {
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && a[j] + 0 < a[j - 1] + 0; j--) {
            t = a[j]
            a[j] = a[j - 1]
            a[j - 1] = t
        }
    return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
}

function median(key,   i, a) {
    for (i = 1; i <= count[key]; i++) a[i] = seconds[key, i]
    return sort_and_take(a, count[key])
}

# The same epoch of the same round, one after the other.
function median_ratio(ours, theirs,   i, a) {
    for (i = 1; i <= count[ours]; i++) a[i] = seconds[theirs, i] / seconds[ours, i]
    return sort_and_take(a, count[ours])
}

function mean_loss(key) { return loss[key, final[key]] / runs[key, final[key]] }

function percent(key) { return 100 * accuracy[key, final[key]] / runs[key, final[key]] }

function samples_of(widths, batch,   i, part, n, one) {
    n = split(settings, one, " ")
    for (i = 1; i <= n; i++) {
        split(one[i], part, ":")
        if (part[1] == widths && part[2] == batch) return part[3]
    }
}

function csv_line(who, part, key) {
    printf "784-%s-10,%s,%s,%s,%s,%.6g,%s,%.5g,%.4g\n", part[1], part[2],
        samples_of(part[1], part[2]), part[3], who, median(key),
        who == "normlayers" ? 1 : sprintf("%.4g", r), mean_loss(key), percent(key) > csv
}

END {
    printf "# program: bench/mnist\n# version: %s\n# compiler: %s\n# flags: -O3 -march=native\n" \
        "# pytorch: %s\n# processor: %s\n# rounds: %s\n", version, compiler,
        torch == "" ? "none" : torch, cpu, rounds > csv
    print "network,batch,samples,norm,contestant,seconds,times_ours,loss,test_accuracy" > csv
    printf "normlayers.h %s on %s,\n%s, -O3 -march=native; one thread,\n%s round%s%s.\n\n", version,
        cpu, compiler, rounds, rounds == 1 ? "" : "s",
        torch == "" ? "" : "; PyTorch " torch > markdown
    print "| network | batch | samples | norm | ours | PyTorch | PyTorch / ours |" \
        " loss, ours / PyTorch | test accuracy, ours / PyTorch |\n" \
        "|---|---|---|---|---|---|---|---|---|" > markdown
    printf "%-18s %5s %7s %-6s %10s %10s %6s  %s\n", "network", "batch", "samples", "norm",
        "ours, s", "PyTorch, s", "ratio", "loss, ours / PyTorch; test accuracy, %"
    for (i = 1; i <= nets; i++) {
        split(order[i], part, " ")
        ours = order[i] " normlayers"
        theirs = order[i] " pytorch"
        both = theirs in count
        if (both) r = median_ratio(ours, theirs)
        n = samples_of(part[1], part[2])
        csv_line("normlayers", part, ours)
        if (both) csv_line("pytorch", part, theirs)
        time = both ? sprintf("%.3f", median(theirs)) : "-"
        ratio = both ? sprintf("%.2f", r) : "-"
        right = sprintf("%.2f", percent(ours)) (both ? sprintf(" / %.2f", percent(theirs)) : "")
        fell = sprintf("%.3f", mean_loss(ours)) (both ? sprintf(" / %.3f", mean_loss(theirs)) : "")
        printf "%-18s %5s %7s %-6s %10.3f %10s %6s  %s; %s\n", "784-" part[1] "-10", part[2], n,
            part[3], median(ours), time, ratio, fell, right
        printf "| 784-%s-10 | %s | %s | %s | %.3f s | %s | %s | %s | %s |\n", part[1], part[2], n,
            part[3], median(ours), both ? time " s" : "–", both ? ratio : "–", fell,
            right > markdown
    }
}
