"""Of a profile's trace: how many sums of buckets began before their step's backward pass ended, and how many there were.

    overlap.py TRACE
"""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    spans = [one for one in json.load(file)["traceEvents"] if one["ph"] == "X"]
early = every = 0
for step in (one for one in spans if one["cat"] == "step"):
    end = step["ts"] + step["dur"]
    inside = [one for one in spans if one["pid"] == step["pid"] and step["ts"] <= one["ts"] < end]
    passes = [one["ts"] + one["dur"] for one in inside if one["name"] == "embedding_gradient"]
    if not passes:
        continue  # a short batch has nothing for this rank
    backward = max(passes)
    sums = [one["ts"] for one in inside if one["name"] == "sum bucket"]
    early += sum(begin < backward for begin in sums)
    every += len(sums)
print(early, every)
