"""Times allocations of the driver made by PyTorch, a few frames of Python deep: torch_allocations.py OUT. Uncached."""
import json
import sys
import time

import torch


def allocate(depth):
    return allocate(depth - 1) if depth else torch.empty(1 << 20, dtype=torch.uint8, device="cuda")


times = []
for i in range(2000):
    begin = time.perf_counter()
    block = allocate(4)
    times.append(time.perf_counter() - begin)
    del block
json.dump({"times": times[200:]}, open(sys.argv[1], "w"))
