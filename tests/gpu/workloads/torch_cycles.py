"""torch_cycles.py OUT [leaks] [marks]: a model is loaded, used and unloaded twenty times; with `leaks` one layer of each stays.

Writes what PyTorch holds after each cycle, and ends at once: an interpreter's end would free it. With `marks` each cycle is marked.
"""
import ctypes
import gc
import json
import os
import sys
import time

import torch

N_CYCLES, N_LAYERS, WIDTH = 20, 6, 1536
DEVICE = torch.device("cuda")
kept, floors, times_ns = [], [], []


def load():
    layers = []
    for _ in range(N_LAYERS):
        layers.append(torch.nn.Linear(WIDTH, WIDTH, bias=False, device=DEVICE))  # the leak: one of six is kept
    return torch.nn.Sequential(*layers)


def use(model):
    for batch in 16, 96, 48, 128:
        model(torch.rand(batch, WIDTH, device=DEVICE))


def cycle():
    model = load()
    with torch.inference_mode():
        use(model)
    if "leaks" in sys.argv[2:]:
        kept.append(model[3])


for number in range(N_CYCLES):
    if "marks" in sys.argv[2:]:
        recorder = ctypes.CDLL(None)
        if hasattr(recorder, "vramtrace_mark"):
            recorder.vramtrace_mark(f"cycle {number}".encode())
    cycle()
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    time.sleep(0.1)
    floors.append(torch.cuda.memory_allocated())
    times_ns.append(time.monotonic_ns())

with open(sys.argv[1], "w") as out:
    json.dump({"cycles": N_CYCLES, "floors": floors, "times_ns": times_ns, "kept": len(kept), "bytes_each": WIDTH * WIDTH * 4,
               "reserved": torch.cuda.memory_reserved()}, out)
os._exit(0)
