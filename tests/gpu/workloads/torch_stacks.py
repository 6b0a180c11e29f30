"""
A small transformer, trained with data from worker processes through pinned memory: torch_stacks.py OUT STEPS. Much is kept.
Writes what PyTorch itself recorded of the blocks that are live at the end: address, bytes, Python frames.
"""
import json
import os
import sys

import torch

out, steps = sys.argv[1], int(sys.argv[2])
kept = []


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 16 * steps

    def __getitem__(self, i):
        return torch.randint(8000, (65,), generator=torch.Generator().manual_seed(i))


class Doubled(torch.autograd.Function):
    """Python that the autograd thread runs."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        kept.append(torch.empty(3 << 20, device="cuda"))
        return gradient * 2


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
        self.embedding = torch.nn.Embedding(8000, 256)
        self.encoder = torch.nn.TransformerEncoder(layer, 4)
        self.head = torch.nn.Linear(256, 8000)

    def forward(self, tokens):
        hidden = self.encoder(Doubled.apply(self.embedding(tokens)))
        kept.append(hidden)
        return self.head(hidden)


def train(model, optimizer, batch):
    logits = model(batch[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    kept.extend(p.grad for p in model.parameters())
    optimizer.step()
    kept.append(logits)
    return loss.item()


def main():
    torch.manual_seed(1)
    torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks="python", max_entries=1000000)
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    loader = torch.utils.data.DataLoader(Tokens(), batch_size=16, num_workers=2, pin_memory=True)
    for batch in loader:
        kept.append(batch.cuda(non_blocking=True))
        train(model, optimizer, kept[-1])
    torch.cuda.synchronize()
    blocks = [b for s in torch.cuda.memory._snapshot()["segments"] for b in s["blocks"] if b["state"] == "active_allocated"]
    with open(out, "w") as file:
        json.dump({"torch": torch.__version__, "blocks": [
            {"address": b["address"], "bytes": b["size"], "frames": [(f["filename"], f["name"], f["line"]) for f in b.get("frames", ())]}
            for b in blocks]}, file)
    # An interpreter's end would free them.
    os._exit(0)


# Worker processes that are started afresh import this file.
if __name__ == "__main__":
    main()
