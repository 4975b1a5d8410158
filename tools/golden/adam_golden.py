#!/usr/bin/env python3
"""Steps of torch.optim.Adam, whose weight decay is part of the gradient, in float64: tests/golden/adam.json.

Usage: adam_golden.py [REPOSITORY]

The numbers given (initial, gradients) are float32 values, so that a test can start from the same ones.
"""

import json
import pathlib
import sys

import torch

STEPS, COUNT = 8, 37


def main():
    here = pathlib.Path(__file__).resolve().parent
    repository = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else here.parents[1]
    generator = torch.Generator().manual_seed(3)
    initial = torch.randn(COUNT, generator=generator)
    gradients = 0.1 * torch.randn(STEPS, COUNT, generator=generator)
    gradients[3::4] = 0
    parameter = torch.nn.Parameter(initial.double())
    optimizer = torch.optim.Adam([parameter], lr=1e-2, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.1)
    after = []
    for gradient in gradients:
        parameter.grad = gradient.double()
        optimizer.step()
        after.append(parameter.detach().tolist())
    golden = {
        "initial": [initial.double().tolist()],
        "gradients": gradients.double().tolist(),
        "parameters": after,
    }
    path = repository / "tests" / "golden" / "adam.json"
    path.write_text(json.dumps(golden) + "\n", encoding="utf-8")
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
