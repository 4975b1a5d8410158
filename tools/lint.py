#!/usr/bin/env python3
"""The house rules that a compiler does not know. Prints each breach as FILE:LINE: what; exits 1 if any.

Usage: lint.py [REPOSITORY]
"""

import pathlib
import re
import subprocess
import sys

# Which folders of src/ a folder may include, besides itself. Point down, never up.
LOWER = ["base", "formats", "tokenizer", "program", "kernels", "comm"]
MIDDLE = ["ops", "data", "models", "optimizers", "strategies", "devices"]
MAY_INCLUDE = {
    "base": [],
    "launch": ["base"],
    # What it reads back of the runs that it started is JSON: these two headers, and nothing of tensors.
    "compare": ["base", "formats/json.h", "formats/utf8.h"],
    "formats": ["base"],
    "tokenizer": ["base", "formats"],
    "program": ["base"],
    "kernels": ["base"],
    "comm": ["base"],
    "ops": ["base", "program"],
    "data": ["base", "formats", "tokenizer", "comm"],
    "models": ["base", "formats", "program", "ops"],
    "optimizers": ["base", "program", "ops"],
    "strategies": ["base", "program", "ops"],
    "devices": ["base", "program", "ops", "kernels"],
    "engine": LOWER + MIDDLE,
    "monitor": LOWER + MIDDLE + ["engine"],
    "api": LOWER + MIDDLE + ["engine", "monitor"],
    "cli": ["launch", "compare"],
}
SEES_PUBLIC_HEADER = {"api", "cli"}

# System headers that belong to some folders only.
HEADER_HOMES = [
    (re.compile(r"mpi\.h$"), ["src/comm/mpi/"]),
    (re.compile(r"(cuda|cublas|nvml).*\.h$"), ["src/devices/cuda/", "src/comm/nccl/"]),
    (re.compile(r"nccl\.h$"), ["src/comm/nccl/"]),
    (re.compile(r"(immintrin|x86intrin)\.h$"), ["src/kernels/", "src/base/"]),
]

FORBIDDEN_CALLS = [
    (
        r"malloc|calloc|realloc|reallocarray|free|strdup|strndup|asprintf|vasprintf|getline|getdelim"
        r"|aligned_alloc|posix_memalign",
        "allocates behind base/alloc.h",
        lambda path: path.startswith("src/") and path != "src/base/alloc.c" and not path.startswith("src/cli/"),
    ),
    (
        "|".join(
            name + suffix
            for name in "exp exp2 expm1 log log2 log10 log1p pow sin cos tan sinh cosh tanh erf erfc".split()
            for suffix in ("", "f", "l")
        ),
        "calls the C library's mathematics, whose bits change with its version; use base/ or kernels/",
        lambda path: path.startswith("src/") and not path.startswith("src/cli/"),
    ),
    (
        r"printf|vprintf|puts|putchar|perror|exit|_exit|abort|assert|err|errx|warn|warnx",
        "prints or exits: the library reports through ls_error and callbacks",
        lambda path: path.startswith("src/") and not path.startswith(("src/cli/", "src/launch/", "src/compare/")),
    ),
    (
        r"sprintf|vsprintf|strcpy|strcat|gets|atoi|atol|atof|strtok|rand|srand|drand48|localtime|gmtime",
        "is unsafe or keeps hidden state",
        lambda path: path.startswith(("src/", "examples/")),
    ),
]

# Assembled from pieces, so that this file passes its own check.
FORBIDDEN_TEXT = [
    (re.compile(r"(?<![\w.])/(work|opt)" + "/"), "names a path of one machine"),
    (re.compile("pypi" + r"\.org|python" + "hosted|debian" + r"\.org|npmjs" + r"\."), "names a registry host"),
    (re.compile(r"\b(TO" + "DO|FIX" + "ME|XX" + r"X)\b"), "is a note to self: do it or drop it"),
]

LONGEST_FILE, LONG_FILE = 800, 400
LONGEST_FUNCTION, LONG_FUNCTION = 120, 70
LONGEST_README = 40
LARGEST_BLOB = 1 << 20
TEXT = {".c", ".h", ".py", ".sh", ".md", ".txt", ".json", ".in", ".yml", ""}
CODE = {".c", ".h", ".py", ".sh", ".cu"}


class Report:
    def __init__(self):
        self.breaches = 0
        self.long_files = []
        self.long_functions = []

    def breach(self, path, line, text):
        self.breaches += 1
        print(f"{path}:{line}: {text}")


def without_comments_and_strings(source):
    """The same lines, with what is not code blanked out."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, blank, source, flags=re.DOTALL)


def check_includes(report, path, lines):
    folder = path.split("/")[1] if path.count("/") >= 2 else ""
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
        if not match:
            continue
        quote, header = match.groups()
        for pattern, homes in HEADER_HOMES:
            if pattern.match(header) and not path.startswith(tuple(homes)):
                report.breach(path, number, f"{header} belongs in {' and '.join(homes)} only")
        if quote == "<" or not path.startswith("src/"):
            continue
        if header == "lockstep.h":
            if folder not in SEES_PUBLIC_HEADER:
                report.breach(path, number, "only src/api and src/cli include the public header")
        elif not header.startswith("lockstep/"):
            target = header.split("/")[0]
            if "/" not in header or ".." in header:
                report.breach(path, number, f'write "FOLDER/{header}", from src/')
            elif target != folder and not {target, header} & set(MAY_INCLUDE.get(folder, [])):
                report.breach(path, number, f"{folder}/ must not include {target}/ (includes point down)")
    if path.startswith("src/") and folder and folder not in MAY_INCLUDE:
        report.breach(path, 1, f"src/{folder} has no line in MAY_INCLUDE of tools/lint.py")


def check_calls(report, path, code):
    for names, reason, applies in FORBIDDEN_CALLS:
        if not applies(path):
            continue
        for match in re.finditer(rf"(?<![\w.>])({names})\s*\(", code):
            number = code.count("\n", 0, match.start()) + 1
            report.breach(path, number, f"{match.group(1)}() {reason}")


def check_functions(report, path, lines):
    """Formatted code opens and closes a function's body in the first column."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            length = number - start + 2
            if length > LONGEST_FUNCTION:
                report.breach(path, start, f"function of {length} lines; at most {LONGEST_FUNCTION}")
            elif length > LONG_FUNCTION:
                report.long_functions.append(f"{path}:{start} {length}")
            start = None


def check_text(report, path, text, lines):
    suffix = pathlib.PurePath(path).suffix
    for number, line in enumerate(lines, 1):
        for pattern, reason in FORBIDDEN_TEXT:
            if pattern.search(line):
                report.breach(path, number, reason)
    if suffix in CODE:
        if len(lines) > LONGEST_FILE:
            report.breach(path, 1, f"{len(lines)} lines; at most {LONGEST_FILE}")
        elif len(lines) > LONG_FILE:
            report.long_files.append(f"{path} {len(lines)}")
    if path.endswith("/README.md") and len(lines) > LONGEST_README:
        report.breach(path, 1, f"{len(lines)} lines; a folder's README has at most {LONGEST_README}")
    if text and not text.endswith("\n"):
        report.breach(path, len(lines), "no newline at the end")


def check_readmes(report, repository, paths):
    folders = {"tests", "tools"} | {"/".join(path.split("/")[:2]) for path in paths
                                           if path.startswith("src/") and path.count("/") >= 2}
    # Folders below those, where there is an order to read them in.
    below = [path.rsplit("/", 1)[0] for path in paths if path.startswith("src/") and path.count("/") > 2 and path.endswith(".c")]
    folders |= {folder for folder in below if below.count(folder) > 1}
    folders |= {folder for folder in ("bench", "examples") if (repository / folder).is_dir()}
    for folder in sorted(folders):
        if f"{folder}/README.md" not in paths:
            report.breach(folder, 0, "has no README.md (purpose, reading order, rules, how to add one)")


def main():
    here = pathlib.Path(__file__).resolve().parents[1]
    repository = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else here
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=repository, check=True, capture_output=True, text=True,
    ).stdout.split("\n")
    paths = sorted({path for path in listed if path and (repository / path).is_file()})
    report = Report()
    for path in paths:
        size = (repository / path).stat().st_size
        if size > LARGEST_BLOB:
            report.breach(path, 0, f"{size} bytes; nothing over {LARGEST_BLOB} is committed")
        suffix = pathlib.PurePath(path).suffix
        if suffix not in TEXT or path == "LICENSE" or path.startswith(("tests/fuzz/corpus/", "tests/data/")):
            continue
        text = (repository / path).read_text(encoding="utf-8")
        lines = text.split("\n")[:-1] if text.endswith("\n") else text.split("\n")
        check_text(report, path, text, lines)
        if suffix in (".c", ".h"):
            check_includes(report, path, lines)
            check_calls(report, path, without_comments_and_strings(text))
            check_functions(report, path, lines)
    check_readmes(report, repository, set(paths))
    for title, found in (
        (f"files of more than {LONG_FILE} lines", report.long_files),
        (f"functions of more than {LONG_FUNCTION} lines", report.long_functions),
    ):
        print(f"{len(found)} {title}" + "".join(f"\n    {entry}" for entry in found))
    print(f"{len(paths)} files, {report.breaches} breaches of the rules")
    sys.exit(report.breaches > 0)


if __name__ == "__main__":
    main()
