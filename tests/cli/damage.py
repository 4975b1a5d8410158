#!/usr/bin/env python3
"""Change a copy of a model folder by Python statements, to see what the program says of it.

Usage: damage.py FOLDER config STATEMENTS     they see `config`, what config.json holds
       damage.py FOLDER weights STATEMENTS    they see the parts of model.safetensors: `header`, a dict; `word`,
                                              the entry of the word embeddings; `body`, a bytearray; `announced`,
                                              the header's length as the file gives it (None: the true one)
"""

import json
import math
import pathlib
import struct
import sys


def put_float(body, entry, index, value):
    start = entry["data_offsets"][0] + 4 * index
    body[start : start + 4] = struct.pack("<f", value)


folder, what, statements = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
names = {"math": math, "put_float": put_float}
if what == "config":
    path = folder / "config.json"
    names["config"] = json.loads(path.read_text())
    exec(statements, names)
    path.write_text(json.dumps(names["config"]))
else:
    path = folder / "model.safetensors"
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    word = next(header[name] for name in header if name.endswith("embeddings.word_embeddings.weight"))
    names |= {"header": header, "word": word, "body": bytearray(data[8 + length :]), "announced": None}
    exec(statements, names)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    announced = len(text) if names["announced"] is None else names["announced"]
    path.write_bytes(struct.pack("<Q", announced) + text + names["body"])
