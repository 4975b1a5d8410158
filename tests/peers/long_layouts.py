#!/usr/bin/env python3
"""The real model and data on one device, on several with each strategy, with what offload and recompute change, in two
processes, and in less memory than one device needs: the same weights after 50 steps."""

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


def run(output, start, *flags):
    command = [*start, os.environ["LOCKSTEP"], "train", "--model", peers.MODEL, "--output", output]
    command += ["--train", peers.REVIEWS / "train.tsv", "--max-steps", STEPS, "--quiet", *flags]
    return subprocess.run([str(part) for part in command], env={**os.environ, **SETTINGS}, capture_output=True, text=True)


def weights(folder, start, *flags):
    output = folder / "output"
    done = run(output, start, *flags)
    if done.returncode != 0:
        return done.stderr
    digest = hashlib.sha256((output / "model.safetensors").read_bytes()).hexdigest()
    shutil.rmtree(output)
    return digest


def main():
    layouts = {
        "ddp, two devices": ([], "ddp", "--devices", "2"),
        "ddp, three devices": ([], "ddp", "--devices", "3"),
        "ddp, two processes": (["mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none"], "ddp"),
        "zero3, two processes": (["mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none"], "zero3"),
    }
    for strategy in ("zero1", "zero2", "zero3", "zero3+offload", "ddp+recompute", "zero3+recompute"):
        layouts[f"{strategy}, two devices"] = ([], strategy, "--devices", "2")
    limit = ("--device-memory", "300MiB")
    layouts["zero3, four devices of 300 MiB"] = ([], "zero3", "--devices", "4", *limit)
    layouts["zero3 with offload, one device of 300 MiB"] = ([], "zero3+offload", *limit)
    with peers.temporary_folder() as temporary:
        folder = peers.pathlib.Path(temporary)
        wanted = weights(folder, [])
        disk = ("--offload-optimizer", "disk", "--offload-parameters", "disk", "--offload-path", folder)
        layouts["zero3 with offload to disk, two devices"] = ([], "zero3", "--devices", "2", *disk)
        for name, (start, strategy, *flags) in layouts.items():
            same = weights(folder, start, "--strategy", strategy, *flags) == wanted
            peers.check(same, f"{name}: the weights of one device after {STEPS} steps")
        refused = run(folder / "refused", [], "--strategy", "ddp", *limit)
        peers.check(refused.returncode == 1 and "the smallest change that fits" in refused.stderr, "ddp in 300 MiB is refused")
    peers.finish()


if __name__ == "__main__":
    main()
