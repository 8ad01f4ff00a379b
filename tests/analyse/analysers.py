#!/usr/bin/env python3
"""analysers.py - the static analysers of gcc (-fanalyzer) and clang (--analyze) on the header,
npz.h and the modules of the examples, except plot.c and lab.c, which take them minutes.

    analysers.py             all
    analysers.py --sample    clang's on the header and npz.h, gcc's on npz.h

In the header clang's checkers of null pointers, garbage values and division are off: they do not
follow its tables of arguments, and Frama-C proves these things (analyse.sh). Each warning must be
in reviewed.txt, with a reason; and each entry there must be needed. A planted fault must be found.
The last line is "analysers: N passed, N failed".
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = "tests/analyse"
INCLUDE = ["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-I.", "-Iexamples", "-isystem",
           "/usr/include/stb"]
CLANG = "clang-19 --analyze --analyzer-output text -Wno-everything".split()
GCC = "gcc -O0 -fanalyzer -c -o /dev/null".split()
WARNING = re.compile(r"([^\s:]+):(\d+):\d+: warning: .*\[(?:CWE-\d+\] \[)?-?W?([\w.-]+)\]$")


def jobs(sample):
    """(compiler, what to analyse, flags) for each run."""
    small = [f"examples/lab/{c}" for c in sorted(os.listdir("examples/lab"))
             if c.endswith(".c") and c != "lab.c"] + ["examples/plot/stroke_font.c"]
    in_header = ["-Xclang", "-analyzer-disable-checker", "-Xclang", "core"]
    all_jobs = [(CLANG, "normlayers.h", in_header), (GCC, "examples/npz.h", []),
                (CLANG, "examples/npz.h", [])]
    if sample:
        return all_jobs
    all_jobs += [(GCC, "normlayers.h", []), (CLANG, "normlayers.h", in_header + ["-DNRM_DOUBLE"])]
    return all_jobs + [(compiler, c, []) for compiler in (CLANG, GCC) for c in small]


def analyse(job):
    """(what was run, its warnings as (checker, file, text of the line), what else is wrong)."""
    compiler, path, flags = job
    with open(path, encoding="utf-8") as file:
        macro = re.search(r"\b[A-Z_0-9]+_IMPLEMENTATION\b", file.read())
    command = compiler + INCLUDE + flags + ([f"-D{macro[0]}"] if macro else []) + ["-x", "c", path]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    name = f"{compiler[0]} {path} {' '.join(flags)}".strip()
    found = set()
    for line in done.stdout.splitlines():
        match = WARNING.match(line)
        if match:
            with open(match[1], encoding="utf-8") as file:
                text = file.read().splitlines()[int(match[2]) - 1].strip()
            found.add((match[3], os.path.relpath(match[1]), text))
    wrong = done.stdout[-2000:] if done.returncode != 0 else ""
    return name, found, wrong


def reviewed():
    """The entries of reviewed.txt: checker, file, text of the line; the reason is for people."""
    with open(f"{HERE}/reviewed.txt", encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
    return [(*lines[i].split(" "), lines[i + 1], lines[i + 2]) for i in range(0, len(lines), 3)]


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    sample = "--sample" in sys.argv
    for compiler in (CLANG[0], GCC[0]):
        if not shutil.which(compiler):
            print(f"analysers: missing: {compiler}")
    todo = [job for job in jobs(sample) if shutil.which(job[0][0])]
    known = reviewed()
    passed = failed = 0
    seen = set()
    with ThreadPoolExecutor(max_workers=2) as pool:
        for name, found, wrong in pool.map(analyse, todo):
            new = [w for w in found if w not in [k[:3] for k in known]]
            seen |= found
            passed, failed = passed + (not new and not wrong), failed + bool(new or wrong)
            for warning in sorted(new):
                print(f"analysers: {name}: {' '.join(warning)}")
            if wrong:
                print(f"analysers: {name}:\n{wrong}")
    for entry in known:
        if not sample and entry[:3] not in seen:
            print(f"analysers: reviewed.txt: nobody warns of {' '.join(entry[:3])}")
            failed += 1
    with tempfile.TemporaryDirectory() as folder:
        planted = os.path.join(folder, "planted.h")
        with open(planted, "w", encoding="utf-8") as file:
            file.write("#include <stdlib.h>\nint planted(int n);\nint planted(int n)\n{\n"
                       "    int *p = n > 3 ? (int *)malloc(4) : NULL;\n    *p = n;\n"
                       "    return n;\n}\n")
        for compiler in (CLANG, GCC):
            if shutil.which(compiler[0]):
                ok = bool(analyse((compiler, planted, []))[1])
                passed, failed = passed + ok, failed + (not ok)
                if not ok:
                    print(f"analysers: {compiler[0]} does not find a planted fault")
    print(f"analysers: {passed} passed, {failed} failed")
    return failed > 0 or passed == 0


sys.exit(main())
