#!/usr/bin/env python3
"""matrix.py - the tests on other compilers, processors and systems.

    matrix.py             all targets
    matrix.py --sample    the quick ones, and one emulated processor, which the commit chooses
    matrix.py --docs      all, and the tables into docs/determinism.md; a target that has passed
                          here before, with the same compiler and sources, is not run again
    matrix.py NAME...     these targets

Each target compiles the header once for each type, links the programs below with it and runs them:
natively, under QEMU or Wine, or in Node. A warning is an error. Then come the builds that the
header must refuse. A target whose compiler or emulator is not here has not been checked: it is
printed as missing and counts as a failure (`make deps-dev` installs what is needed on Debian).

Environment: BUILD, the folder for what is built. The last line is "matrix: N passed, N failed".
"""
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

TYPES = {"f32": [], "f64": ["-DNRM_DOUBLE"], "acc32": ["-DNRM_ACC=float"]}
# Column of the table, source, types where it runs natively, types where it is emulated.
PROGRAMS = [
    ("bits", "determinism", "f32 f64 acc32", "f32 f64 acc32"),
    ("contracts", "test_contracts", "f32 f64", "f32 f64"),
    ("values", "test_golden", "f32 f64", "f32 f64"),
    ("files", "test_npz", "f32", "f32"),
    ("network", "test_mlp", "f32 f64", "f64"),
]
FLAGS = "-O2 -ffp-contract=off -I. -Iexamples -Itests".split()
WARNINGS = "-Wall -Wextra -Werror".split()
LLVM_WASM = ("clang-19 --target=wasm32-wasi -Wno-unused-command-line-argument -fuse-ld=lld "
             "-Wl,-z,stack-size=1048576 -D_WASI_EMULATED_PROCESS_CLOCKS "
             "-lwasi-emulated-process-clocks")


class Target:
    """A compiler with its flags, what runs its programs, and what the table says of it."""

    def __init__(self, name, system, compiler, flags="", runner="", quick=False, wants="",
                 header="", known=None):
        self.name, self.system, self.quick, self.flags = name, system, quick, flags
        self.header = header  # flags for the header alone: they would break the tests
        self.known = known  # names of lines that may differ, for a reason given in the docs
        self.compiler = compiler.split()
        self.standard = [] if "-std=" in compiler else ["-std=c99"]
        self.runner = runner.split()
        self.wants = wants  # a file without which there is no such target

    def missing(self):
        """What is not here, or None."""
        if not shutil.which(self.compiler[0]):
            return self.compiler[0]
        if self.runner:
            found = next((r for r in self.runner[0].split("|") if shutil.which(r)), None)
            if not found:
                return self.runner[0].replace("|", " or ")
            self.runner[0] = found
        if self.wants and not os.path.exists(self.wants):
            return self.wants
        return None

    def compile(self, *arguments):
        """The completed process of the compiler."""
        return run(self.compiler + self.flags.split() + self.standard + list(arguments))


def qemu(processor):
    return f"qemu-{processor}-static|qemu-{processor}"


PC = "x86-64 Linux"
WINE = "wine64|wine|/usr/lib/wine/wine64"
NODE = "node --no-warnings " + os.path.abspath("tests/matrix/wasi.mjs")
TARGETS = [
    Target("gcc", PC, "gcc"),
    Target("gcc-native", PC, "gcc -O3 -march=native"),
    Target("clang", PC, "clang"),
    Target("clang-19", PC, "clang-19"),
    Target("clang-partial", PC, "clang", header="-fassociative-math -freciprocal-math "
           "-fapprox-func -fno-signed-zeros -fno-trapping-math"),
    Target("tcc", PC, "tcc", quick=True),
    Target("musl", "x86-64 Linux, musl, static", "musl-gcc -static"),
    Target("no-vectors", PC, "gcc", "-DNRM_NO_VECTORS"),
    Target("no-dispatch", PC, "gcc", "-DNRM_NO_DISPATCH"),
    Target("i386", "i386 Linux, SSE2", "gcc -m32 -msse2 -mfpmath=sse", quick=True),
    Target("aarch64", "64-bit ARM, QEMU", "aarch64-linux-gnu-gcc -static", "", qemu("aarch64")),
    Target("riscv64", "RISC-V 64, QEMU", "riscv64-linux-gnu-gcc -static", "", qemu("riscv64")),
    Target("ppc", "PowerPC 32, big endian, QEMU", "powerpc-linux-gnu-gcc -static", "",
           qemu("ppc")),
    Target("s390x", "s390x, big endian, QEMU", "s390x-linux-gnu-gcc -static -std=gnu99", "",
           qemu("s390x")),
    Target("windows", "x86-64 Windows, Wine", "x86_64-w64-mingw32-gcc -static", "", WINE),
    Target("wasm", "WebAssembly, Node", LLVM_WASM, "", NODE, wants="/usr/include/wasm32-wasi"),
    Target("wasm-simd", "WebAssembly with SIMD, Node", LLVM_WASM + " -msimd128", "", NODE,
           wants="/usr/include/wasm32-wasi", known=["relu"]),  # the sign of ReLU(-0)
]
# A newer gcc than the system's, where there is one.
TARGETS[1:1] = [Target(f"gcc-{n}", PC, f"gcc-{n}") for n in range(13, 19)
                if shutil.which(f"gcc-{n}")]

FAST = "compile without -ffast-math"
EVALUATION = "computed in another type"
# Compiler and flags, what the header must say, and the flag with which it compiles all the same.
REFUSED = [
    ("gcc -ffast-math", FAST, ""),
    ("gcc -Ofast", FAST, ""),
    ("gcc -ffinite-math-only", FAST, ""),
    ("gcc -funsafe-math-optimizations", FAST, ""),
    ("gcc -fassociative-math -fno-signed-zeros -fno-trapping-math", FAST, ""),
    ("gcc -freciprocal-math", FAST, ""),
    ("clang -ffast-math", FAST, ""),
    ("clang -Ofast", FAST, ""),
    ("clang -ffinite-math-only", FAST, ""),
    ("clang -fno-honor-nans -fno-honor-infinities", FAST, ""),
    ("clang-19 -ffast-math", FAST, ""),
    ("clang-19 -ffp-model=fast", FAST, ""),
    ("gcc -m32 -mfpmath=387", EVALUATION, "-DNRM_ANY_FLOAT_EVAL"),
    ("gcc -mfpmath=387", EVALUATION, "-DNRM_ANY_FLOAT_EVAL"),
    ("s390x-linux-gnu-gcc -std=c99", EVALUATION, "-std=gnu99"),
]


def run(command, cwd=None, environment=None, seconds=900):
    """The completed process; one that does not end fails."""
    try:
        return subprocess.run(command, cwd=cwd, env=environment, timeout=seconds,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no end after {seconds} s\n")


def source_of(name):
    found = glob.glob(f"tests/**/{name}.c", recursive=True)
    if len(found) != 1:
        sys.exit(f"matrix: there are {len(found)} files {name}.c below tests")
    return found[0]


def golden(kind):
    return run(["awk", "-v", "type=" + kind, "-f", "tests/bits/golden.awk",
                "tests/expected/golden.txt"]).stdout.splitlines()


def counts(target, program, kind, printed):
    """(passed, failed, what to show) of one program's output."""
    lines = printed.stdout.splitlines()
    if program == "determinism":
        def certain(some):
            return [line for line in some if line.split(" ")[1:2] != target.known]
        expected, lines = certain(golden(kind)), certain(lines)
        same = sum(a == b for a, b in zip(expected, lines))
        wrong = [line for line in lines if line not in expected][:10]
        if printed.returncode != 0 or len(lines) != len(expected):
            return same, max(1, len(expected) - same), lines[-10:] + printed.stderr.splitlines()
        return same, len(expected) - same, wrong
    verdict = re.match(r".*: (\d+) passed, (\d+) failed$", lines[-1]) if lines else None
    if not verdict:
        return 0, 1, lines[-10:] + printed.stderr.splitlines()
    passed, failed = int(verdict[1]), int(verdict[2])
    failed += printed.returncode != 0 and failed == 0
    return passed, failed, lines[-20:] if failed else []


def sources():
    """A fingerprint of all that the programs are built of, and are compared with."""
    found = hashlib.sha256()
    for path in sorted(["normlayers.h", "examples/npz.h", "tests/bits/golden.awk"] +
                       [source_of(p[1]) for p in PROGRAMS] +
                       glob.glob("tests/**/*.h", recursive=True) +
                       glob.glob("tests/matrix/*.*") + glob.glob("tests/expected/*.*")):
        with open(path, "rb") as file:
            found.update(file.read())
    return found.hexdigest()


class Check:
    """All programs of one target."""

    def __init__(self, target, build, again=True):
        self.target = target
        self.folder = os.path.abspath(os.path.join(build, "matrix", target.name))
        self.passed = {column: 0 for column, *_ in PROGRAMS}
        self.failed = dict(self.passed)
        self.notes = []
        started = time.monotonic()
        self.lacks = target.missing()
        if self.lacks is None and (again or not self.remembered()):
            self.work()
            self.remember()
        self.seconds = time.monotonic() - started

    def key(self):
        return [sources(), self.version(), self.target.compiler, self.target.flags]

    def remembered(self):
        try:
            with open(os.path.join(self.folder, "passed.json"), encoding="utf-8") as file:
                key, passed = json.load(file)
        except (OSError, ValueError):
            return False
        if key == self.key():
            self.passed = passed
        return key == self.key()

    def remember(self):
        if any(self.failed.values()):
            return
        with open(os.path.join(self.folder, "passed.json"), "w", encoding="utf-8") as file:
            json.dump([self.key(), self.passed], file)

    def fail(self, column, what, lines):
        self.failed[column] += 1
        self.notes.append(f"{self.target.name}, {what}")
        self.notes += ["    " + line for line in lines[-20:]]

    def work(self):
        os.makedirs(self.folder, exist_ok=True)
        implementation = os.path.join(self.folder, "normlayers.c")
        with open(implementation, "w", encoding="utf-8") as file:
            file.write('#define NORMLAYERS_IMPLEMENTATION\n#include "normlayers.h"\n')
        built = {}
        for kind, options in TYPES.items():
            built[kind] = os.path.join(self.folder, f"normlayers.{kind}.o")
            done = self.target.compile(*FLAGS, *WARNINGS, *options, *self.target.header.split(),
                                       "-c", implementation, "-o", built[kind])
            if done.returncode != 0:
                del built[kind]
                self.fail("bits", f"{kind}: the header does not compile", done.stderr.splitlines())
        for column, program, native, emulated in PROGRAMS:
            for kind in (emulated if self.target.runner else native).split():
                if kind in built:
                    self.program(column, program, kind, built[kind])

    def program(self, column, name, kind, linked):
        path = os.path.join(self.folder, f"{name}.{kind}.exe")
        done = self.target.compile(*FLAGS, *TYPES[kind], "-O1", "-DNRM_IMPLEMENTED",
                                   source_of(name), linked, "-o", path, "-lm")
        if done.returncode != 0:
            self.fail(column, f"{name} {kind} does not compile", done.stderr.splitlines())
            return
        environment = dict(os.environ, WINEDEBUG="-all", TMPDIR=self.folder,
                           WINEPREFIX=os.path.join(self.folder, "wine"))
        # tests of files write where they are, where nothing else is
        cwd = self.folder if column == "files" else None
        done = run(self.target.runner + [path], cwd, environment)
        passed, failed, lines = counts(self.target, name, kind, done)
        self.passed[column] += passed
        if failed:
            self.fail(column, f"{name} {kind}: {failed} of {passed + failed} fail", lines)
            self.failed[column] += failed - 1

    def version(self):
        """Name and version of the compiler, without what only this machine says."""
        done = run(["gcc" if self.target.compiler[0] == "musl-gcc" else self.target.compiler[0],
                    "-v" if self.target.compiler[0] == "tcc" else "--version"])
        number = re.search(r"\d+\.\d+(\.\d+)?|\d+(?=-win32)", re.sub(r"\(.*?\)", "", done.stdout))
        name = "clang" if "clang" in self.target.compiler[0] else \
            "tcc" if self.target.compiler[0] == "tcc" else "gcc"
        return f"{name} {number[0] if number else '?'}"

    def cells(self):
        """The row of the table in docs."""
        words = self.target.compiler[1:] + (self.target.flags + " " + self.target.header).split()
        shown = [w for w in words if re.match("-(O|m|f[^u]|DNRM)", w)]
        flags = " ".join(f"`{f}`" for f in shown)
        cells = [f"{self.passed[c]}" if not self.failed[c] else
                 f"{self.passed[c]}, {self.failed[c]} failed" for c, *_ in PROGRAMS]
        return [self.target.name, self.target.system, f"{self.version()} {flags}".strip()] + cells


def refusals():
    """(flags, refused or what else) for each build that must not compile."""
    said = []
    for command, text, otherwise in REFUSED:
        compiler = command.split()
        if not shutil.which(compiler[0]):
            said.append((command, text, otherwise, "missing"))
            continue
        first = compiler[:1] + ["-O2", "-I.", "-DNORMLAYERS_IMPLEMENTATION"]
        rest = ["-x", "c", "-fsyntax-only", "normlayers.h"]
        done = run(first + compiler[1:] + rest)
        verdict = "refused"
        if done.returncode == 0 or text not in done.stderr:
            verdict = "NOT refused"
        elif run(first + (compiler[1:] + [otherwise] if otherwise else []) + rest).returncode:
            verdict = "refused all the same"
        said.append((command, text, otherwise, verdict))
    return said


def tables(checks, refused):
    """The text of docs/determinism.md between its marks."""
    def row(cells):
        return "| " + " | ".join(cells) + " |"
    lines = [row(["target", "system", "compiler"] + [c for c, *_ in PROGRAMS]),
             "|---|---|---|" + "---:|" * len(PROGRAMS)]
    lines += [row(check.cells()) for check in checks]
    lines += ["", "| must not compile | | compiles with |", "|---|---|---|"]
    lines += [row([f"`{command}`", verdict, f"`{otherwise}`" if otherwise else ""])
              for command, _, otherwise, verdict in refused]
    return "\n".join(lines)


def write_docs(text):
    path = "docs/determinism.md"
    with open(path, encoding="utf-8") as file:
        page = file.read()
    begin, end = "<!-- matrix: begin (written by make matrix-docs) -->", "<!-- matrix: end -->"
    before, rest = page.split(begin)
    page = f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)
    print("matrix: wrote", path)


def sample():
    """The quick targets, and one of the others, by the commit."""
    commit = run(["git", "rev-parse", "HEAD"]).stdout.strip()
    others = [t for t in TARGETS if t.runner]
    return [t for t in TARGETS if t.quick] + [others[zlib.crc32(commit.encode()) % len(others)]]


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    build = os.environ.get("BUILD") or "build"
    options = [a for a in sys.argv[1:] if a.startswith("-")]
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    unknown = [n for n in names if n not in [t.name for t in TARGETS]]
    if unknown or set(options) - {"--sample", "--docs"}:
        sys.exit(f"matrix: the targets are {' '.join(t.name for t in TARGETS)}")
    chosen = sample() if "--sample" in options else \
        [t for t in TARGETS if t.name in names or not names]
    with ThreadPoolExecutor(max_workers=max(1, min(2, os.cpu_count() or 1))) as pool:
        checks = []
        for check in pool.map(lambda target: Check(target, build, "--docs" not in options),
                              chosen):
            checks.append(check)
            if check.lacks:
                print(f"matrix: {check.target.name} is not checked: no {check.lacks} here")
                continue
            cells = ", ".join(f"{c} {check.passed[c]}" +
                              (f" ({check.failed[c]} failed)" if check.failed[c] else "")
                              for c, *_ in PROGRAMS)
            print(f"{check.target.name:14}{cells}; {check.seconds:.0f} s", flush=True)
            for note in check.notes:
                print(f"matrix: {note}")
    refused = refusals()
    for command, _, _, verdict in refused:
        if verdict == "missing":
            print(f"matrix: {command} is not checked: no {command.split()[0]} here")
        else:
            print(f"{command}: {verdict}")
    passed = sum(sum(c.passed.values()) for c in checks) + \
        sum(v == "refused" for *_, v in refused)
    failed = sum(sum(c.failed.values()) for c in checks) + \
        sum(v not in ("refused", "missing") for *_, v in refused)
    missing = sum(c.lacks is not None for c in checks) + sum(v == "missing" for *_, v in refused)
    if "--docs" in options:
        if missing or failed:
            sys.exit("matrix: the page is not written, since not everything has passed")
        write_docs(tables(checks, refused))
    print(f"matrix: {len(checks)} targets, {missing} missing")
    print(f"matrix: {passed} passed, {failed + missing} failed")
    return failed + missing > 0


sys.exit(main())
