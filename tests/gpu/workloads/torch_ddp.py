"""torch_ddp.py FOLDER: a rank of a distributed training on two GPUs, started by torchrun. Writes FOLDER/rank-R.json: what PyTorch
says of its device. Rank 1 also touches GPU 0, as programs do by mistake: that takes a context there and nothing else."""
import json
import os
import pathlib
import sys

import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
torch.manual_seed(1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(8))).cuda())
optimizer = torch.optim.Adam(model.parameters())
for step in range(20):
    optimizer.zero_grad()
    model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
torch.cuda.synchronize()
if rank == 1:
    torch.cuda.synchronize(0)
dist.barrier()
stats = torch.cuda.memory_stats()
out = {"pid": os.getpid(), "rank": rank, "reserved": stats["reserved_bytes.all.current"],
       "allocated": stats["allocated_bytes.all.current"], "peak_reserved": stats["reserved_bytes.all.peak"],
       "uuid": str(torch.cuda.get_device_properties(rank).uuid)}
pathlib.Path(sys.argv[1], f"rank-{rank}.json").write_text(json.dumps(out))
os._exit(0)
