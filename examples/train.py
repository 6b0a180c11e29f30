#!/usr/bin/env python3
"""A small language model trained on random data, to have something to trace:

    LD_PRELOAD=/path/to/libvramtrace.so python3 train.py [STEPS]
    vramtrace report vramtrace.python3*.vt

Each step of a training loop takes device memory for a different reason; the comments say which.
"""
import sys

import torch
from torch import nn

VOCABULARY = 8192
WIDTH = 512
LAYERS = 2
BATCH = 16
LENGTH = 256


class Model(nn.Module):
    """Token embedding, two transformer layers, and a score for each possible next token."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, nhead=8, dim_feedforward=4 * WIDTH, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.layers(self.embed(tokens)))


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    if not torch.cuda.is_available():
        sys.exit("train.py: PyTorch finds no CUDA device")
    torch.manual_seed(0)

    # The weights. Until here the process has no CUDA context; making it takes some hundred MiB that no allocation
    # call of the program asked for.
    model = Model().cuda()
    # AdamW keeps two more numbers for each weight; it takes that memory in its first step, not here.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loss_of = nn.CrossEntropyLoss()

    for step in range(steps):
        # A batch made on the host and copied from pageable memory, as a simple data loader does.
        tokens = torch.randint(VOCABULARY, (BATCH, LENGTH + 1)).cuda()

        # Activations: every layer keeps its inputs for the backward pass. Most of the peak is here.
        scores = model(tokens[:, :-1])
        loss = loss_of(scores.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))

        # Gradients come in, one for each weight; activations go.
        loss.backward()
        optimizer.step()
        # set_to_none (the default) gives the gradients back after each step.
        optimizer.zero_grad()

        # .item() copies one number to the host and waits for the device.
        if step % 10 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.3f}")

    stats = torch.cuda.memory_stats()
    print(f"peak: {stats['allocated_bytes.all.peak']} bytes in tensors, "
          f"{stats['reserved_bytes.all.peak']} bytes reserved from the driver "
          f"in {stats.get('num_device_alloc', 'an unknown number of')} allocations")


if __name__ == "__main__":
    main()
