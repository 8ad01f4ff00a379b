#!/usr/bin/env python3
"""coverage.py - which lines, branches and conditions of normlayers.h and examples/npz.h do the
tests reach? (make coverage)

Each variant of the header (precisions, plain, without vectors, every instruction set that this
processor has) is compiled with clang's source-based coverage, and the tests run with it. A line or
an outcome of a branch counts as reached if it is in some variant. The branches of a macro count at
each place that uses it. A condition counts for MC/DC if one variant shows that it decides alone.

What cannot be reached is in unreachable.txt beside this file, with its reason; an entry that is
reached after all, or is not there, is a failure. The last line is "coverage: N passed, N failed".

  coverage.py [FOLDER]    what is built goes to FOLDER, build/coverage if none is named
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WATCHED = ["normlayers.h", "examples/npz.h"]
LEAST_MCDC = 98.0  # percent
JOBS = min(2, os.cpu_count() or 1)

# The tests of the layers, and of what else the header has.
LAYERS = "layers rows contracts status unchanged sync workers power numerics".split()
KERNELS = "layers rows contracts".split()
# Variant: what it is compiled with, the vectors that it needs, its tests.
VARIANTS = [
    ("f32", "", None, LAYERS + ["gemm", "recurrent", "mlp"]),
    ("f64", "-DNRM_DOUBLE", None, LAYERS + ["gemm"]),
    ("acc32", "-DNRM_ACC=float", None, LAYERS),
    ("plain32", "-DNRM_PLAIN", None, LAYERS),
    ("small", "-DNRM_PLAIN -DNRM_ACC=float", None, KERNELS + ["sync"]),
    ("plain64", "-DNRM_PLAIN -DNRM_DOUBLE", None, KERNELS),
    ("no_vectors", "-DNRM_NO_VECTORS", None, KERNELS),
    ("baseline", "-DNRM_NO_DISPATCH", None, KERNELS),
    ("narrow", "-DNRM_WIDTH=8", None, KERNELS),
    ("to_16", "-DNRM_DISPATCH_LIMIT=16", None, KERNELS),
    ("to_32", "-DNRM_DISPATCH_LIMIT=32", "avx2", KERNELS),
    ("to_64", "-DNRM_DOUBLE -DNRM_DISPATCH_LIMIT=64", "avx512f", KERNELS),
    ("threads", "-DNRM_OPENMP -D_OPENMP=201107 -Itests/coverage", None,
     ["status", "layers"]),
    ("npz", "", None, ["npz"]),
]


def fail(text):
    print("coverage: " + text)
    print("coverage: 0 passed, 1 failed")
    sys.exit(1)


def find_tools():
    """clang and its two programs, of version 19 if it is here: older ones have no MC/DC."""
    for version in ["-19", "-20", "-21", ""]:
        tools = [shutil.which(name + version) for name in ["clang", "llvm-profdata", "llvm-cov"]]
        if all(tools):
            said = subprocess.run([tools[0], "-dumpversion"], capture_output=True, text=True)
            if int(said.stdout.split(".")[0]) >= 18:
                return tools
    fail("missing: clang 18 or later with llvm-profdata and llvm-cov ('make deps-dev')")


def processor_has(flag):
    if flag is None:
        return True
    try:
        with open("/proc/cpuinfo") as cpu:
            return flag in cpu.read().split()
    except OSError:
        return False


def source_of(test):
    """tests/test_NAME.c, in whichever folder of tests/ it is."""
    for folder, _, files in os.walk(os.path.join(ROOT, "tests")):
        if "test_%s.c" % test in files:
            return os.path.join(folder, "test_%s.c" % test)
    fail("there is no test_%s.c" % test)


class Builder:
    def __init__(self, tools, out):
        self.clang, self.profdata, self.cov = tools
        self.out = out
        self.failures = []
        self.passed = 0
        self.common = ["-std=c99", "-ffp-contract=off", "-pthread", "-w", "-I" + ROOT,
                       "-I" + ROOT + "/examples", "-I" + ROOT + "/tests"]

    def run(self, command, **more):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", cwd=ROOT, **more)
        return done.returncode, done.stdout

    def test(self, variant, test):
        """Builds and runs a test; returns its program."""
        name, defines, _, _ = variant
        program = os.path.join(self.out, "%s.%s" % (name, test))
        source = source_of(test)
        with open(source) as opened:
            text = opened.read()
        inside = any(w in text for w in ["nrmi_", "NRM_GEMM", "npzi_", "NPZ_IMPLEMENTATION"])
        # counters that no thread loses take ten times as long
        threads = "pthread.h" in text or "-DNRM_OPENMP" in defines
        measured = ["-O2", "-fprofile-instr-generate", "-fcoverage-mapping", "-fcoverage-mcdc"]
        measured += ["-fprofile-update=atomic"] if threads else []
        linked = [] if inside else ["-DNRM_IMPLEMENTED", self.header(variant, measured)]
        code, said = self.run([self.clang] + self.common + defines.split() + [
            "-I" + os.path.dirname(source)] + (measured if inside else ["-O0"]) + [source] +
            linked + ["-o", program, "-fprofile-instr-generate", "-lm"])
        if code == 0:
            env = dict(os.environ, LLVM_PROFILE_FILE="%s.%%m.profraw" % program)
            code, said = self.run([program], env=env)
        if code != 0:
            self.failures.append("%s with %s:\n%s" % (test, name, said[-3000:]))
        else:
            self.passed += 1
        return program

    def header(self, variant, measured):
        """The functions of the header in that variant; compiled when they are first asked for."""
        made = os.path.join(self.out, "%s.%d.o" % (variant[0], len(measured)))
        if os.path.exists(made):
            return made
        source = made[:-2] + ".c"
        with open(source, "w") as text:
            text.write('#define NORMLAYERS_IMPLEMENTATION\n#include "normlayers.h"\n')
        code, said = self.run([self.clang] + self.common + variant[1].split() + measured +
                              ["-c", source, "-o", made])
        if code != 0:
            fail("%s does not compile:\n%s" % (variant[0], said))
        return made

    def measure(self, variant):
        """The exported coverage of each program of a variant, or of all that share a header."""
        programs = [self.test(variant, test) for test in variant[3]]
        raw = [os.path.join(self.out, f) for f in os.listdir(self.out)
               if f.startswith(variant[0] + ".") and f.endswith(".profraw")]
        merged = os.path.join(self.out, variant[0] + ".profdata")
        code, said = self.run([self.profdata, "merge", "-o", merged] + raw)
        if code != 0:
            fail("%s: %s" % (variant[0], said))
        exports = []
        for program in programs:
            done = subprocess.run([self.cov, "export", program, "-instr-profile=" + merged],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT)
            exports.append(json.loads(done.stdout))
        return exports


class Reached:
    """What was reached of one file, in any variant."""

    def __init__(self, path):
        self.path = os.path.join(ROOT, path)
        with open(self.path) as text:
            self.text = text.read().split("\n")
        self.lines = collections.defaultdict(bool)
        self.branches = collections.defaultdict(bool)
        self.conditions = collections.defaultdict(bool)
        self.parts = set()  # conditions of decisions: where they stand, and in which function

    def slice(self, region):
        """The source of a region, on one line; with a sizeof before it, if there is one."""
        a, b, c, d = region
        if self.bytes(a)[:b - 1].endswith(b"sizeof *("):
            b -= len("sizeof *(")
        if a == c:
            text = self.bytes(a)[b - 1:d - 1]
        else:
            text = self.bytes(a)[b - 1:] + b" " + b" ".join(self.bytes(i) for i in range(a + 1, c))
            text += b" " + self.bytes(c)[:d - 1]
        return " ".join(text.decode("utf-8", "replace").replace("\\", " ").split())

    def bytes(self, line):
        return self.text[line - 1].encode()

    def add_lines(self, segments):
        """By the rule of llvm-cov: the largest count of the regions that begin in or cover it."""
        by_line = collections.defaultdict(list)
        for segment in segments:
            by_line[segment[0]].append(segment)
        wrapped = None
        if not segments:
            return
        for line in range(segments[0][0], segments[-1][0] + 1):
            here = by_line[line]
            starts = [s for s in here if s[3] and s[4] and not s[5]]
            skipped = bool(here) and not here[0][3] and here[0][4]
            if not skipped and (starts or (wrapped is not None and wrapped[3])):
                count = wrapped[2] if wrapped is not None and wrapped[3] else 0
                count = max([count] + [s[2] for s in starts])
                self.lines[line] |= count > 0
            if here:
                wrapped = here[-1]

    def add_function(self, function, path_of):
        name = re.sub(r"_f64$|_f32_float$", "", function["name"].split(":")[-1])
        where = {}  # expanded file: the place that uses the macro
        for region in function["regions"]:
            if region[7] == 1:
                where[region[6]] = (region[5], tuple(region[:2]))

        def place(file):
            path = []
            while file in where:
                file, at = where[file]
                path.append(at)
            return file, tuple(path)

        for b in function["branches"]:
            file, used = place(b[6])
            if b[8] == 6 and not used:
                self.parts.add((tuple(b[:4]), name))
            if path_of(b[6]) != self.path or path_of(file) != self.path:
                continue
            for outcome, count in [(True, b[4]), (False, b[5])]:
                self.branches[(tuple(b[:4]), used, outcome, name)] |= count > 0
        own = [r for r in function["regions"] if r[5] == 0]
        first, last = min(r[0] for r in own), max(r[2] for r in own)
        for m in function.get("mcdc_records", []):
            region, found = tuple(m[:4]), m[-1]
            if path_of(0) != self.path:
                continue
            if not first <= region[0] <= last: # of a macro in another file
                continue
            for i, shown in enumerate(found):
                self.conditions[(region, (), i, name)] |= shown


def constant(text):
    """Is this known when the header is compiled, or not evaluated at all?"""
    known = r"(sizeof ?\(\w+\)|[0-9]+|NRMI?_[A-Z_]+|[<>=!() ])+"
    return text.startswith("sizeof *(") or re.fullmatch(known, text) is not None


def unreachable():
    """The list beside this file, as far as it applies to this processor."""
    entries = []
    with open(os.path.join(HERE, "unreachable.txt"), encoding="utf-8") as text:
        for line in text:
            if line[0] in "# \n":
                continue
            where, outcome, what = [part.strip() for part in line.split(" | ", 2)]
            function, _, flag = where.partition(" with")
            if flag.startswith("out ") and processor_has(flag[4:]):
                continue
            if flag.startswith(" ") and not processor_has(flag[1:]):
                continue
            entries.append((function, outcome, what))
    return entries


def main():
    out = os.path.join(ROOT, sys.argv[1] if len(sys.argv) > 1 else "build/coverage")
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    builder = Builder(find_tools(), out)
    only = os.environ.get("VARIANTS", "").split()
    variants = [v for v in VARIANTS if not only or v[0] in only]
    for v in variants:
        if not processor_has(v[2]):
            print("coverage: this processor has no %s: %s is left out" % (v[2], v[0]))
    variants = [v for v in variants if processor_has(v[2])]
    with ThreadPoolExecutor(JOBS) as pool:
        measured = list(pool.map(builder.measure, variants))
    files = {os.path.join(ROOT, p): Reached(p) for p in WATCHED}
    for exports in measured:
        for export in exports:
            data = export["data"][0]
            for file in data["files"]:
                if file["filename"] in files:
                    files[file["filename"]].add_lines(file["segments"])
            for function in data["functions"]:
                names = function["filenames"]
                for path, reached in files.items():
                    if path in names:
                        reached.add_function(function, lambda i: names[i])
    for text in builder.failures:
        print(text)
    failed = len(builder.failures) + judge(files, bool(only))
    print("coverage: %d passed, %d failed" % (builder.passed, failed))
    return 1 if failed else 0


def judge(files, partial):
    """Prints what was not reached, and the figures; returns the number of failures."""
    failures = 0
    entries = unreachable()
    used = set()

    def excused(name, outcome, what):
        for entry in entries:
            if entry[0] in (name, "*") and entry[1] == outcome and entry[2] == what:
                used.add(entry)
                return True
        return False

    for path, reached in files.items():
        short = os.path.relpath(path, ROOT)
        totals = {}
        lines = {l: hit for l, hit in reached.lines.items()
                 if not reached.text[l - 1].lstrip().startswith("#")}
        totals["lines"] = (sum(lines.values()), len(lines))
        for line in sorted(l for l, hit in lines.items() if not hit):
            print("%s:%d: line: %s" % (short, line, reached.text[line - 1].strip()))
            failures += 1
        hits = count = 0
        for (region, place, outcome, name), hit in sorted(reached.branches.items()):
            what = reached.slice(region)
            if constant(what):
                continue
            outcome = str(outcome).lower()
            if not hit and excused(name, outcome, what):
                continue
            if hit and (name, outcome, what) in entries:
                print("unreachable.txt: reached: %s, %s in %s" % (what, outcome, name))
                failures += 1
            hits += hit
            count += 1
            if not hit:
                failures += 1
                print("%s:%d: never %s in %s%s: %s" % (
                    short, (place[-1] if place else region)[0], outcome, name,
                    ", by a macro" if place else "", what))
        totals["branches"] = (hits, count)
        hits = count = 0
        for (region, _, i, name), hit in sorted(reached.conditions.items()):
            parts = sorted(r for r, n in reached.parts if n == name and r[:2] >= region[:2] and
                           r[2:] <= region[2:])
            what = reached.slice(parts[i]) if i < len(parts) else "?"
            if constant(what):
                continue
            if not hit and any(excused(name, outcome, what) for outcome in ["true", "false"]):
                continue
            hits += hit
            count += 1
            if not hit:
                print("%s:%d: MC/DC in %s: %s" % (short, region[0], name, what))
        totals["conditions"] = (hits, count)
        for what, (hit, of) in totals.items():
            print("%s: %d of %d %s, %.2f %%" % (short, hit, of, what, 100.0 * hit / max(1, of)))
        failures += 100.0 * hits < LEAST_MCDC * count
    print("but for %d outcomes that unreachable.txt names" % len(used))
    for entry in entries:
        if entry not in used and not partial:
            print("unreachable.txt: not there, or reached: %s, %s, %s" % entry)
            failures += 1
    return failures


if __name__ == "__main__":
    sys.exit(main())
