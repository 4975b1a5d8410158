"""What the scripts of several processes share: rows, batches, padding, starting the processes, the JSON lines."""
import argparse
import collections
import json
import os
import resource
import socket
import statistics
import sys
import threading
import time

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
from transformers import AutoModelForSequenceClassification, AutoTokenizer, logging

from pytorch_train import batches, read_rows
from settings import SEED

WARM_UP = 3


def parser(description):
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--model", required=True)
    made.add_argument("--train", required=True)
    made.add_argument("--test", help="evaluate on this file after training")
    made.add_argument("--way", choices=["max", "longest", "grouped"], default="longest")
    made.add_argument("--steps", type=int, default=30)
    made.add_argument("--batch-size", type=int, default=32, help="over all processes together")
    made.add_argument("--max-length", type=int, default=128)
    made.add_argument("--processes", type=int, default=2)
    made.add_argument("--threads", type=int, default=1, help="of each process")
    made.add_argument("--serve", action="store_true", help="wait for commands: lines of a case and a number of steps")
    return made


class Data:
    """The same rows in the same order for every process; each takes its part of a batch and pads that."""

    def __init__(self, arguments, rank):
        self.arguments, self.rank = arguments, rank
        self.tokenizer = AutoTokenizer.from_pretrained(arguments.model)
        texts, self.labels, self.classes = read_rows(arguments.train)
        self.encoded = self.encode(texts)
        lengths = [len(ids) for ids in self.encoded]
        self.groups = batches(lengths, arguments.batch_size, arguments.way, SEED)
        epochs = -(-arguments.steps // len(self.groups))
        for epoch in range(1, epochs):
            self.groups += batches(lengths, arguments.batch_size, arguments.way, SEED + epoch)

    def encode(self, texts):
        return self.tokenizer(texts, truncation=True, max_length=self.arguments.max_length)["input_ids"]

    def pad(self, encoded):
        padding = "max_length" if self.arguments.way == "max" else "longest"
        return self.tokenizer.pad(
            {"input_ids": encoded}, padding=padding, max_length=self.arguments.max_length, return_tensors="pt"
        )

    def steps(self, count):
        """(inputs with labels of this process, real tokens of all processes) of each of the first steps."""
        share = self.arguments.batch_size // self.arguments.processes
        for group in self.groups[:count]:
            own = group[self.rank * share : (self.rank + 1) * share]
            inputs = dict(self.pad([self.encoded[i] for i in own]))
            inputs["labels"] = torch.tensor([self.labels[i] for i in own])
            yield inputs, sum(len(self.encoded[i]) for i in group)

    def evaluate(self, model):
        """Loss, accuracy and macro-F1 on --test, all rows in this process; under ZeRO 3 every process has to run it."""
        texts, labels, _ = read_rows(self.arguments.test)
        encoded, loss, pairs = self.encode(texts), 0, []
        order = sorted(range(len(texts)), key=lambda i: len(encoded[i]))
        model.eval()
        with torch.no_grad():
            for start in range(0, len(order), 64):
                rows = order[start : start + 64]
                wanted = torch.tensor([labels[i] for i in rows])
                logits = model(**self.pad([encoded[i] for i in rows])).logits
                loss += torch.nn.functional.cross_entropy(logits, wanted, reduction="sum").item()
                pairs += zip(logits.argmax(-1).tolist(), wanted.tolist())
        right = sum(found == wanted for found, wanted in pairs)
        return {"final_loss": loss / len(texts), "accuracy": right / len(texts), "macro_f1": macro_f1(pairs, self.classes)}


def macro_f1(pairs, classes):
    """The mean of 2 x right / (found + wanted) over the classes that are in either."""
    right, found, wanted = (
        collections.Counter(keys)
        for keys in ([a for a, b in pairs if a == b], [a for a, _ in pairs], [b for _, b in pairs])
    )
    present = [one for one in range(classes) if found[one] + wanted[one]]
    return sum(2 * right[one] / (found[one] + wanted[one]) for one in present) / len(present)


def load_model(arguments, classes):
    logging.set_verbosity_error()
    torch.manual_seed(SEED)
    model = AutoModelForSequenceClassification.from_pretrained(arguments.model, num_labels=classes)
    return model.train()


class Work:
    """What one process trains. A command is "CASE STEPS": so many steps of the first batches with that case;
    with "test" behind it, an evaluation on --test, too."""

    def __init__(self, rank, arguments):
        self.rank, self.arguments = rank, arguments
        self.data = Data(arguments, rank)
        self.cases = self.prepare()
        torch.manual_seed(SEED + rank)

    def prepare(self):
        """{case: function of one step's inputs}"""
        raise NotImplementedError

    def model(self, case):
        raise NotImplementedError

    def train(self, case, steps):
        step, seconds, tokens = self.cases[case], [], []
        start = time.perf_counter()
        for inputs, count in self.data.steps(steps):
            step(inputs)
            end = time.perf_counter()
            seconds.append(end - start)
            tokens.append(count)
            start = end
        return {"seconds": seconds, "tokens": tokens}

    def obey(self, command):
        case, steps, *test = command.split()
        result = self.train(case, int(steps))
        if test:
            result.update(self.data.evaluate(self.model(case)))
            self.model(case).train()
        result["peak_kib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return result


def enter(rank, work, arguments, commands, results):
    os.dup2(2, 1)  # libraries log to the standard output, which is for results
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
    torch.set_num_threads(arguments.threads)
    distributed.init_process_group("gloo")
    worker = work(rank, arguments)
    results.put("ready")
    for command in iter(commands[rank].get, None):
        results.put((rank, worker.obey(command)))
    distributed.destroy_process_group()


def pairs_of(results, count):
    """One result of each process; rank 0's, with the most memory that a process had, and that of all."""
    found = dict(results.get() for _ in range(count))
    peaks = [one["peak_kib"] for one in found.values()]
    return {**found[0], "peak_kib": max(peaks), "peak_kib_of_all": sum(peaks)}


def summary(result):
    seconds, tokens = result["seconds"][WARM_UP:], result["tokens"][WARM_UP:]
    kept = {key: value for key, value in result.items() if key not in ("seconds", "tokens")}
    return {"tokens_per_second": sum(tokens) / sum(seconds), "step_seconds": statistics.median(seconds), **kept}


def start(work, arguments, cases):
    """Run Work in each process. Prints a JSON line a case; with --serve one line ("ready") and then one for each
    command that it reads, with the seconds and tokens of every step, and ends with its input."""
    if arguments.batch_size % arguments.processes:
        raise SystemExit(f"a batch of {arguments.batch_size} cannot be shared by {arguments.processes} processes")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        WORLD_SIZE=str(arguments.processes),
        LOCAL_SIZE=str(arguments.processes),
        OMP_NUM_THREADS=str(arguments.threads),
        TOKENIZERS_PARALLELISM="false",
        GLOO_SOCKET_IFNAME="lo",
    )
    context = multiprocessing.get_context("spawn")
    commands = [context.SimpleQueue() for _ in range(arguments.processes)]
    results = context.SimpleQueue()
    group = multiprocessing.spawn(
        enter, args=(work, arguments, commands, results), nprocs=arguments.processes, join=False
    )
    # A process that fails ends all: without this the wait for its result would last for ever.
    watcher = threading.Thread(target=watch, args=(group,), daemon=True)
    watcher.start()
    for _ in range(arguments.processes):
        results.get()
    if arguments.serve:
        print("ready", flush=True)
    test = " test" if arguments.test else ""
    for command in sys.stdin if arguments.serve else [f"{case} {arguments.steps}{test}" for case in cases]:
        for queue in commands:
            queue.put(command.strip())
        result = pairs_of(results, arguments.processes)
        line = result if arguments.serve else {"case": command.split()[0], **summary(result)}
        print(json.dumps(line), flush=True)
    for queue in commands:
        queue.put(None)
    watcher.join()


def watch(group):
    try:
        while not group.join():
            pass
    except Exception as error:  # whatever a process has raised
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
