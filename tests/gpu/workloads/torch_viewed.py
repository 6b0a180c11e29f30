"""A convolution network trained on growing batches until memory is refused, with PyTorch's own history on: its snapshot's totals
go to the file given, the snapshot itself beside it. The process may take 3 GiB, as if the device were small.
"""
import json
import os
import pickle
import sys

import torch
from torch import nn

out, limit = sys.argv[1], 3 << 30
torch.manual_seed(1)
torch.cuda.memory._record_memory_history(max_entries=1 << 20)
torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.get_device_properties(0).total_memory)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width))

    def forward(self, x):
        return torch.relu(x + self.body(x))


class Network(nn.Module):
    def __init__(self, width=64, depth=6, classes=100):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 7, stride=2, padding=3)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        return self.head(self.blocks(self.stem(images)).mean((2, 3)))


def step(model, optimizer, batch):
    images = torch.randn(batch, 3, 128, 128).cuda()
    loss = nn.functional.cross_entropy(model(images), torch.randint(100, (batch,)).cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def train(model, optimizer):
    for batch in (16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 384, 512):
        try:
            for _ in range(4):
                step(model, optimizer, batch)
        except torch.cuda.OutOfMemoryError:
            return batch
    return 0


network = Network().cuda()
refused = train(network, torch.optim.AdamW(network.parameters()))
torch.cuda.synchronize()
snapshot = torch.cuda.memory._snapshot()
with open(out + ".pickle", "wb") as file:
    pickle.dump(snapshot, file)
with open(out, "w") as file:
    json.dump({"refused_batch": refused, "torch": torch.__version__,
               "stats": {k: v for k, v in torch.cuda.memory_stats().items() if isinstance(v, int)}}, file)
os._exit(0)  # what the interpreter frees at its end is not in the snapshot
