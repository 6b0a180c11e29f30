"""torch_blocks_run.py WORKLOAD OUT: runs it, writes PyTorch's own statistics and snapshot of its allocator, and ends at once."""
import json
import os
import sys
import threading

import torch

import torch_models

torch.manual_seed(1)
kept = []


def resnet(depth):
    model = torch_models.resnet(depth).cuda()
    after_move = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    for step in range(4):
        loss = model(torch.randn(8, 3, 224, 224, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    kept.extend((model, optimizer))
    return {"after_move": after_move}


def gpt2(steps=3):
    model = torch_models.Gpt().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(steps):
        tokens = torch.randint(50257, (2, 257 + 16 * step), device="cuda")
        logits = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    kept.extend((model, optimizer, loss))


def transformer(steps=20):
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model = torch.nn.Sequential(
        torch.nn.Embedding(8000, 256), torch.nn.TransformerEncoder(layer, 4), torch.nn.Linear(256, 8000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(steps):
        batch = torch.randint(8000, (16, 65 + step % 8)).cuda()
        loss = torch.nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.empty_cache()
    kept.extend((model, optimizer, loss, model(batch[:, :-1])))


def streams():
    """Blocks used on another stream, which are freed and reused, and some that still wait at the end."""
    side = torch.cuda.Stream()
    for step in range(300):
        x = torch.empty((1 + step % 7) << 18, dtype=torch.uint8, device="cuda")
        with torch.cuda.stream(side):
            x.add_(1)
            if step % 3 == 0:
                kept.append(torch.empty(1000 * (1 + step % 11), device="cuda"))
        x.record_stream(side)
        del x
        if step % 10 == 0:
            torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000_000)
    for i in range(5):
        x = torch.empty((3 + i) << 20, dtype=torch.uint8, device="cuda")
        x.record_stream(side)
        del x


def threads():
    def work(n):
        for step in range(400):
            x = torch.empty(1 + 977 * (step * n % 311), device="cuda")
            if step % 5 == 0:
                kept.append(x)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()


def graph():
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)).cuda()
    x = torch.randn(64, 512, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        model(x)
    torch.cuda.synchronize()
    graphs = [torch.cuda.CUDAGraph() for _ in range(3)]
    with torch.no_grad():
        for i, g in enumerate(graphs):
            with torch.cuda.graph(g, stream=stream, pool=graphs[0].pool() if i == 1 else None):
                kept.append(model(x) * 2)
    for g in graphs:
        g.replay()
    kept.extend((model, graphs))


def refused():
    """More than the device has, twice; what was cached is given back on the way."""
    for size in (1 << 50, torch.cuda.get_device_properties(0).total_memory + (1 << 30)):
        kept.append(torch.empty(1 << 20, device="cuda"))
        torch.empty(64 << 20, device="cuda")
        try:
            torch.empty(size, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            pass


workload, out = sys.argv[1], sys.argv[2]
more = {"resnet18": lambda: resnet(18), "resnet50": lambda: resnet(50), "gpt2": gpt2, "transformer": transformer,
        "streams": streams, "threads": threads, "graph": graph, "refused": refused}[workload]() or {}
stats = torch.cuda.memory_stats()
snapshot = []
if torch.cuda.get_allocator_backend() == "native":
    for segment in torch.cuda.memory_snapshot():
        at, blocks = segment["address"], []
        for block in segment["blocks"]:
            blocks.append((at, block["size"], block["state"]))
            at += block["size"]
        snapshot.append({"address": segment["address"], "size": segment["total_size"], "stream": segment["stream"],
                         "expandable": segment.get("is_expandable", False), "pool": segment.get("segment_pool_id", (0, 0)),
                         "blocks": blocks})
json.dump({"stats": stats, "snapshot": snapshot, "torch": torch.__version__, **more}, open(out, "w"))
os._exit(0)  # what is alive now is what the trace is to end with
