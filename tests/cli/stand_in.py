#!/usr/bin/env python3
"""In place of the program under `lockstep launch`: makes "steps" of 0.05 s, dies when told to.

STAND_IN_DIE=RANK:STEP:SIGNAL   that rank ends itself at that step of an attempt
STAND_IN_EXIT=RANK:STEP:STATUS  or with that exit status
STAND_IN_ATTEMPTS=N             only in the first N attempts
STAND_IN_STEPS=N                steps of the whole run (20)
STAND_IN_SAVE=N                 a folder checkpoint-STEP every N steps, from which --resume auto goes on
STAND_IN_DEAF=1                 signals that ask for an end are not heard

Each attempt leaves a line in attempts.txt (ranks, words) and each rank its process id in pids.RANK.
"""

import os
import pathlib
import signal
import sys
import time

rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0")))
world = int(os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("PMI_SIZE", "1")))
words = sys.argv[1:]
output = pathlib.Path(words[words.index("--output") + 1])
asked = []


def setting(name):
    return [int(part) for part in os.environ[name].split(":")] if name in os.environ else None


for number in (signal.SIGUSR1, signal.SIGTERM):
    deaf = "STAND_IN_DEAF" in os.environ
    signal.signal(number, (lambda *_: None) if deaf else (lambda caught, _: asked.append(caught)))
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})

if rank == 0:
    with open("attempts.txt", "a") as file:
        file.write(f"{world} {' '.join(words)}\n")
with open(f"pids.{rank}", "a+") as file:
    file.write(f"{os.getpid()}\n")
    file.seek(0)
    attempt = len(file.read().splitlines())
dying = attempt <= int(os.environ.get("STAND_IN_ATTEMPTS", "1000"))

step = 0
if "--resume" in words:
    step = max((int(path.name.split("-")[1]) for path in output.glob("checkpoint-*")), default=0)
if rank == 0:
    output.mkdir(exist_ok=True)
    (output / "metrics.jsonl").write_text(f'{{"step": {step}}}\n' if step else "")
    print(f"cores {sorted(os.sched_getaffinity(0))}", flush=True)

while step < int(os.environ.get("STAND_IN_STEPS", "20")):
    for name, end in (("STAND_IN_DIE", lambda what: os.kill(os.getpid(), what)), ("STAND_IN_EXIT", os._exit)):
        case = setting(name)
        if dying and case and case[0] == rank and step >= case[1]:
            print(f"\r\x1b[Krank {rank} had step {step}", file=sys.stderr, flush=True)
            end(case[2])
    time.sleep(0.05)
    step += 1
    if rank == 0:
        print(f"\rstep {step}", end="", file=sys.stderr, flush=True)
        with (output / "metrics.jsonl").open("a") as file:
            file.write(f'{{"step": {step}}}\n')
        if "STAND_IN_SAVE" in os.environ and step % int(os.environ["STAND_IN_SAVE"]) == 0:
            (output / f"checkpoint-{step}").mkdir()
    if signal.SIGTERM in asked and world > 1:
        os._exit(4)
    if asked:
        if rank == 0:
            print("stopped", flush=True)
        sys.exit(75)
if rank == 0:
    print("\ndone", file=sys.stderr, flush=True)
