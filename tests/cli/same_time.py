"""Of a profile's trace of two ranks: whether each step is under way on both at some time. No step ends on one rank before
it begins on the other, since each needs the other's gradients.

    same_time.py TRACE
"""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    spans = [one for one in json.load(file)["traceEvents"] if one.get("cat") == "step"]
within = {}
for one in spans:
    within.setdefault(one["name"], []).append((one["ts"], one["ts"] + one["dur"]))
assert within
for name, times in within.items():
    assert len(times) == 2, f"{name}: {len(times)} ranks"
    begin, end = max(one[0] for one in times), min(one[1] for one in times)
    assert begin < end, f"{name}: over on one rank before it begins on the other, {times}"
