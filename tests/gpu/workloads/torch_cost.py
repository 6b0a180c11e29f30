"""
torch_cost.py HISTORY: host time of torch.empty + del, and of a training step, as one JSON line. HISTORY: what PyTorch records
itself: none, python, all; profiler: its profiler, with memory and stacks.
"""
import json
import os
import statistics
import sys
import time

import torch

if sys.argv[1] == "profiler":
    profiler = torch.profiler.profile(profile_memory=True, with_stack=True)
    profiler.start()
elif sys.argv[1] != "none":
    torch.cuda.memory._record_memory_history(stacks=sys.argv[1])
torch.cuda.init()


def pair(rounds=30, n=2000):
    times = []
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        for _ in range(n):
            x = torch.empty(1024, device="cuda")
            del x
        times.append((time.perf_counter_ns() - begin) / n)
    return sorted(times)[len(times) // 4]


def step(steps=200):
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model = torch.nn.Sequential(
        torch.nn.Embedding(8000, 256), torch.nn.TransformerEncoder(layer, 4), torch.nn.Linear(256, 8000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    times = []
    for i in range(steps):
        begin = time.perf_counter_ns()
        batch = torch.randint(8000, (16, 65 + i % 8)).cuda()
        loss = torch.nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        times.append(time.perf_counter_ns() - begin)
    return statistics.median(times[steps // 4:])


print(json.dumps({"pair_ns": pair(), "step_ns": step()}), flush=True)
if sys.argv[1] == "profiler":
    os._exit(0)  # what it makes of its events takes minutes
