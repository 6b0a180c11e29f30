"""A small transformer trained with AdamW. Writes the allocator's own statistics and the step times to the file given."""
import json
import sys
import time

import torch

out, steps = sys.argv[1], int(sys.argv[2])
torch.manual_seed(1)
layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
model = torch.nn.Sequential(
    torch.nn.Embedding(8000, 256), torch.nn.TransformerEncoder(layer, 4), torch.nn.Linear(256, 8000)
).cuda()
optimizer = torch.optim.AdamW(model.parameters())
times = []
for step in range(steps):
    tokens = torch.randint(8000, (16, 65 + step % 8))
    begin = time.perf_counter()
    batch = tokens.cuda()
    loss = torch.nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
    times.append(time.perf_counter() - begin)
torch.cuda.synchronize()
stats = torch.cuda.memory_stats()
keep = ("num_device_alloc", "num_device_free", "reserved_bytes.all.peak", "reserved_bytes.all.current",
        "allocated_bytes.all.peak", "allocated_bytes.all.current", "allocation.all.allocated")
json.dump({"stats": {k: stats.get(k) for k in keep}, "times": times, "torch": torch.__version__,
           "free_total": torch.cuda.mem_get_info()}, open(out, "w"))
