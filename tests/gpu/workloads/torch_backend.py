"""Tensors of known sizes under whatever backend PYTORCH_CUDA_ALLOC_CONF names. Writes what stays alive and the statistics."""
import json
import os
import sys
import time

import torch

kept = [torch.empty((30 + i) << 20, dtype=torch.uint8, device="cuda") for i in range(8)]
dropped = [torch.empty(40 << 20, dtype=torch.uint8, device="cuda") for _ in range(4)]
del dropped
torch.cuda.synchronize()
time.sleep(0.05)
kept.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
torch.cuda.synchronize()
stats = torch.cuda.memory_stats()
with open(sys.argv[1], "w") as out:
    json.dump({"kept_bytes": sum(t.numel() for t in kept), "reserved": stats["reserved_bytes.all.current"],
               "allocated": stats["allocated_bytes.all.current"], "backend": torch.cuda.get_allocator_backend(),
               "mem_get_info": torch.cuda.mem_get_info()}, out)
os._exit(0)  # what is alive now is what the trace is to end with

