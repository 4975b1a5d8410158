"""Time Gloo's collectives (PyTorch's on CPUs) between two processes of one thread each; print one JSON line:
{"all-reduce": {"65536": seconds, ...}, ...}. Sizes as lockstep bench comm has them."""
import json
import os
import sys
import tempfile
import time

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing

SIZES = [64 << 10, 512 << 10, 4 << 20, 32 << 20, 128 << 20]
MOVED = 1 << 30


def calls(world):
    def pieces(tensor):
        return list(tensor.chunk(world))

    return {
        "all-reduce": lambda tensor: distributed.all_reduce(tensor),
        "all-gather": lambda tensor: distributed.all_gather(
            pieces(tensor), tensor[: tensor.numel() // world].clone()
        ),
        "broadcast": lambda tensor: distributed.broadcast(tensor, 0),
    }


def work(rank, world, meeting, results):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    times = {}
    for name, call in calls(world).items():
        times[name] = {}
        for size in SIZES:
            tensor = torch.zeros(size // 4)
            rounds = min(500, max(5, MOVED // size))
            for _ in range(2):
                call(tensor)
            distributed.barrier()
            start = time.perf_counter()
            for _ in range(rounds):
                call(tensor)
            times[name][size] = (time.perf_counter() - start) / rounds
    if rank == 0:
        with open(results, "w", encoding="utf-8") as file:
            json.dump(times, file)


def main():
    world = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        results = os.path.join(folder, "results")
        multiprocessing.spawn(work, args=(world, os.path.join(folder, "meeting"), results), nprocs=world)
        with open(results, encoding="utf-8") as file:
            print(file.read())


if __name__ == "__main__":
    main()
