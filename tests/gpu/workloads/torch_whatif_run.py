"""torch_whatif_run.py WORKLOAD OUT [FRACTION]: what PyTorch's allocator had to do, to be repeated under other settings.

Each workload is the same in every run: random numbers have seeds, and nothing but `prefetch` depends on how fast the GPU is.
FRACTION: of the device's memory, more than which PyTorch may not take. A refusal that ends the program is exit status 3.
"""
import json
import os
import random
import sys

import torch
from torch import nn

import torch_models

MIB = 1 << 20
DEVICE = os.environ.get("WHATIF_DEVICE", "cuda")
choose = random.Random(1)
kept = []


def train(model, optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def small_gpt(width=512, n_layers=6):
    model = torch_models.Gpt(width, n_layers, 8, 8000, 1024).to(DEVICE, torch.bfloat16)
    return model, torch.optim.AdamW(model.parameters())


def gpt_loss(model, batch, length):
    tokens = torch.randint(8000, (batch, length + 1), device=DEVICE)
    logits = model(tokens[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


def gpt():
    """Training, every step like the one before."""
    model, optimizer = small_gpt()
    for _ in range(12):
        train(model, optimizer, gpt_loss(model, 8, 256))


def seqgrow():
    """Training on longer and longer texts."""
    model, optimizer = small_gpt()
    for length in range(64, 705, 40):
        train(model, optimizer, gpt_loss(model, 6, length))


def accum():
    """Gradient accumulation over uneven parts of a batch."""
    model, optimizer = small_gpt()
    for _ in range(6):
        optimizer.zero_grad()
        for part in range(4):
            (gpt_loss(model, choose.randint(1, 10), 64 * choose.randint(1, 6)) / 4).backward()
        optimizer.step()


def resnet():
    model = torch_models.resnet(18).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    for _ in range(5):
        train(model, optimizer, model(torch.randn(24, 3, 224, 224, device=DEVICE)).square().mean())


class UNet(nn.Module):
    def __init__(self, width=32, depth=4):
        super().__init__()
        sizes = [width << i for i in range(depth)]
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1) for a, b in zip(sizes, sizes[1:]))
        self.up = nn.ModuleList(nn.Conv2d(a + b, a, 3, padding=1) for a, b in zip(sizes, sizes[1:]))
        self.last = nn.Conv2d(width, 3, 1)

    def forward(self, x):
        levels = [torch.relu(self.first(x))]
        for layer in self.down:
            levels.append(torch.relu(layer(levels[-1])))
        y = levels.pop()
        for layer in reversed(self.up):
            level = levels.pop()
            y = torch.relu(layer(torch.cat((level, nn.functional.interpolate(y, size=level.shape[2:])), 1)))
        return self.last(y)


def varres():
    """Training on images of random sizes."""
    model = UNet().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(24):
        height, width = (32 * choose.randint(4, 18) for _ in range(2))
        train(model, optimizer, model(torch.randn(8, 3, height, width, device=DEVICE)).square().mean())


def infer():
    """Decoding with growing caches of keys and values, batches and lengths at random."""
    n_layers, width = 4, 512
    maps = [nn.Linear(width, 3 * width).to(DEVICE, torch.bfloat16) for _ in range(n_layers)]
    with torch.no_grad():
        for _ in range(10):
            batch = choose.randint(1, 24)
            x = torch.randn(batch, 16 * choose.randint(2, 40), width, device=DEVICE, dtype=torch.bfloat16)
            caches = [(x, x) for _ in range(n_layers)]
            for _ in range(choose.randint(4, 12)):
                x = x[:, -1:]
                for i, layer in enumerate(maps):
                    q, k, v = layer(x).split(width, 2)
                    caches[i] = torch.cat((caches[i][0], k), 1), torch.cat((caches[i][1], v), 1)
                    x = x + torch.softmax(q @ caches[i][0].transpose(1, 2), 2) @ caches[i][1]


def phases():
    """Training, evaluation with larger batches and training again, the cache given back between."""
    model, optimizer = small_gpt()
    for round in range(2):
        for _ in range(4):
            train(model, optimizer, gpt_loss(model, 6, 192 + 64 * round))
        torch.cuda.empty_cache()
        with torch.no_grad():
            for batch in (24, 16, 32):
                gpt_loss(model, batch, 256)
        torch.cuda.empty_cache()


def sawtooth():
    """Large and small batches by turns, and what is kept of each."""
    layers = [nn.Linear(2048, 2048, device=DEVICE) for _ in range(6)]
    with torch.no_grad():
        for step in range(28):
            x = torch.randn((512, 12288, 3072, 9216, 1024, 14336)[step % 6] + 96 * (step // 6), 2048, device=DEVICE)
            outputs = [x]
            for layer in layers:
                outputs.append(torch.relu(layer(outputs[-1])))
            if step % 4 == 1:
                kept.append(outputs[3][:64].clone())


def graph():
    """A training step captured, three more graphs: one in the pool of another, one destroyed while its output lives."""
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x = torch.randn(2048, 1024, device=DEVICE)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            train(model, optimizer, model(x).square().mean())
    torch.cuda.current_stream().wait_stream(side)
    step = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(step):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    graphs, outputs = [step], []
    with torch.no_grad():
        for pool in (step.pool(), None, None):
            graphs.append(torch.cuda.CUDAGraph())
            with torch.cuda.graph(graphs[-1], pool=pool):
                outputs.append(model(x[:512 * len(graphs)]) * 2)
        for i in range(12):
            kept.append(torch.empty(choose.randint(1, 24) * MIB, dtype=torch.uint8, device=DEVICE))
            if i % 3 == 2:
                kept.pop(choose.randrange(len(kept)))
        graphs.pop()
        torch.cuda.empty_cache()
        for g in graphs:
            g.replay()
        for _ in range(4):
            outputs.append(model(x))
    kept.extend((graphs, outputs, loss))


def random_bytes():
    """Sizes around the borders of the allocator's rules, and any others."""
    border = choose.choice((512, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 32 * MIB, 64 * MIB))
    return choose.choice((border - 1, border, border + 1, border + 512, choose.randint(1, 2 * MIB), choose.randint(1, MIB) * 32,
                          2 << choose.randint(6, 24)))


def stress():
    """Random sizes on three streams, which do not use each other's blocks."""
    streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
    live, total = [], 0
    for _ in range(2500):
        while live and (total > 1500 * MIB or choose.random() < 0.42):
            total -= live.pop(choose.randrange(len(live))).numel()
        with torch.cuda.stream(choose.choice(streams)):
            live.append(torch.empty(random_bytes(), dtype=torch.uint8, device=DEVICE))
            total += live[-1].numel()
    kept.extend(live)


def streams():
    """Data prepared on a side stream, and used on the main one; all is waited for before anything else is asked for."""
    side = torch.cuda.Stream()
    layer = nn.Linear(1024, 1024, device=DEVICE)
    with torch.no_grad():
        for step in range(60):
            with torch.cuda.stream(side):
                x = torch.empty(256 * (1 + step * 7 % 11), 1024, device=DEVICE).normal_()
            torch.cuda.current_stream().wait_stream(side)
            y = layer(x)
            x.record_stream(torch.cuda.current_stream())
            del x
            torch.cuda.synchronize()
            if step % 5 == 0:
                kept.append(y[::3].clone())


def prefetch():
    """As it is done for speed: when a block is free again is a matter of time."""
    side = torch.cuda.Stream()
    layer = nn.Linear(2048, 2048, device=DEVICE)
    with torch.no_grad():
        for step in range(60):
            with torch.cuda.stream(side):
                x = torch.empty(512 * (1 + step * 7 % 11), 2048, device=DEVICE).normal_()
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda._sleep(400_000)
            kept[:] = [layer(x)]
            x.record_stream(torch.cuda.current_stream())
            del x


def apply_settings(conf):
    """As if the variable had been set before PyTorch was imported."""
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = conf
    set_now = getattr(torch._C, "_accelerator_setAllocatorSettings", None) or torch.cuda.memory._set_allocator_settings
    set_now(conf)


def run(workload, out, fraction=None, conf=None):
    """Does not return. conf: settings that are not in the environment; CUDA must not have been used yet."""
    if conf:
        apply_settings(conf)
    if fraction:
        torch.cuda.set_per_process_memory_fraction(float(fraction))
    torch.manual_seed(1)
    refused = None
    try:
        globals()[workload]()
    except torch.OutOfMemoryError as error:
        refused = str(error).splitlines()[0]
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    names = {"peak_reserved_bytes": "reserved_bytes.all.peak", "peak_allocated_bytes": "active_bytes.all.peak",
             "reserved_bytes": "reserved_bytes.all.current", "device_allocations": "num_device_alloc",
             "device_frees": "num_device_free", "retries": "num_alloc_retries", "refused": "num_ooms",
             "allocations": "allocation.all.allocated"}
    truth = {ours: stats[theirs] for ours, theirs in names.items()}
    truth.update(finished=refused is None, message=refused, torch=torch.__version__,
                 total_bytes=torch.cuda.get_device_properties(0).total_memory)
    with open(out, "w") as file:
        json.dump(truth, file)
    os._exit(3 if refused else 0)  # what is alive now is what the trace is to end with


if __name__ == "__main__":
    run(*sys.argv[1:])
