#!/usr/bin/env python3
"""The real model and data on one device, on two and three, and in two processes: the same weights after 50 steps."""

import hashlib
import os
import shutil
import subprocess

import peers

STEPS = 50
SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}


def weights(folder, start, *flags):
    output = folder / "output"
    command = [*start, os.environ["LOCKSTEP"], "train", "--model", peers.MODEL, "--output", output]
    command += ["--train", peers.REVIEWS / "train.tsv", "--max-steps", STEPS, "--quiet", *flags]
    subprocess.run([str(part) for part in command], check=True, env={**os.environ, **SETTINGS})
    digest = hashlib.sha256((output / "model.safetensors").read_bytes()).hexdigest()
    shutil.rmtree(output)
    return digest


def main():
    layouts = {
        "two devices": ([], "--devices", "2"),
        "three devices": ([], "--devices", "3"),
        "two processes": (["mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none"],),
    }
    with peers.temporary_folder() as temporary:
        folder = peers.pathlib.Path(temporary)
        wanted = weights(folder, [])
        for name, (start, *flags) in layouts.items():
            same = weights(folder, start, "--strategy", "ddp", *flags) == wanted
            peers.check(same, f"{name}: the weights of one device after {STEPS} steps")
    peers.finish()


if __name__ == "__main__":
    main()
