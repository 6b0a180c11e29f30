"""
Each tensor is an allocation of its own, with PYTORCH_NO_CUDA_MEMORY_CACHING=1, of a size that tells its place: torch_lines.py
OUT. Writes sys._getframe() and its callers for each, and ends at once: an interpreter's end would free them.
"""
import itertools
import json
import os
import sys

import torch

kept, records, sizes = [], [], itertools.count((1 << 20) + 512, 512)


def note():
    size, frame, frames = next(sizes), sys._getframe(1), []
    while frame:
        code = frame.f_code
        frames.append((code.co_filename, getattr(code, "co_qualname", code.co_name), frame.f_lineno))
        frame = frame.f_back
    records.append((size, frames))
    return size


class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        kept.append(torch.empty(note(), dtype=torch.uint8, device="cuda"))
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        kept.append(torch.empty(note(), dtype=torch.uint8, device="cuda"))
        return gradient * 2


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)

    def forward(self, x):
        kept.append(torch.zeros(note(), dtype=torch.uint8, device="cuda"))
        return Function.apply(self.linear(x)).relu()


def step_hook(optimizer, args, kwargs):
    kept.append(torch.ones(note(), dtype=torch.uint8, device="cuda"))


def collate(items):
    kept.append(torch.full((note(),), 1, dtype=torch.uint8, device="cuda"))
    return torch.stack(items)


def main(out):
    model = torch.nn.Sequential(Module(), Module()).cuda()
    model[0].register_forward_hook(lambda *args: kept.append(torch.empty(note(), dtype=torch.uint8, device="cuda")))
    model[1].register_full_backward_hook(lambda *args: kept.append(torch.empty(note(), dtype=torch.uint8, device="cuda")))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer.register_step_post_hook(step_hook)
    loader = torch.utils.data.DataLoader([torch.ones(64)] * 64, batch_size=8, collate_fn=collate)
    for batch in loader:
        loss = model(batch.cuda()).sum()
        loss.backward()
        kept.extend(p.grad for p in model.parameters())
        optimizer.step()
        optimizer.zero_grad()
        kept.append(sorted([1], key=lambda x: torch.empty(note(), dtype=torch.uint8, device="cuda").numel()))
        kept.extend(torch.empty(note(), dtype=torch.uint8, device="cuda") for _ in range(2))
    torch.cuda.synchronize()
    with open(out, "w") as file:
        json.dump({"torch": torch.__version__, "records": records}, file)
    os._exit(0)


main(sys.argv[1])
