"""torch_oom_run.py WORKLOAD OUT: makes PyTorch, or somebody beside it, run out of memory; what should be known of it goes to OUT.

It ends at once, with what is live then; an interpreter's end would free it. Nothing here takes more than a few GiB: requests are refused by a memory fraction, or ask for more than is free, which takes nothing.
"""
import ctypes
import json
import os
import sys

import torch

MIB, GIB = 1 << 20, 1 << 30
kept = []


def tensor(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def cap(size):
    torch.cuda.set_per_process_memory_fraction(size / torch.cuda.get_device_properties(0).total_memory)


def refused(size):
    try:
        kept.append(tensor(size))
    except torch.OutOfMemoryError:
        return True
    return False


def driver_alloc(size):
    """As a library would that knows nothing of PyTorch. Its result."""
    pointer = ctypes.c_uint64()
    return ctypes.CDLL("libcuda.so.1").cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))


def free():
    return torch.cuda.mem_get_info()[0]


def carved():
    """A block of 1008 MiB is cut up for 21 of 48; three of them stay."""
    cap(1200 * MIB)
    large = tensor(1008 * MIB)
    del large
    pieces = [tensor(48 * MIB) for _ in range(21)]
    kept.extend(pieces[3::7])
    del pieces
    return {"refused": refused(800 * MIB), "requested": 800 * MIB}


def drift():
    for step in range(24):
        outputs = [tensor((64 + step) * MIB) for _ in range(2)]
        del outputs
    return {}


def too_late():
    """What fits waits for another stream when it is asked for, and comes free while that is refused."""
    cap(2 * GIB)
    whole = tensor(1024 * MIB)
    del whole
    block, rest = tensor(768 * MIB), tensor(256 * MIB)
    kept.extend((rest, tensor(960 * MIB)))
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(2_000_000_000)
        block.record_stream(side)
    del block
    was_refused = refused(768 * MIB)
    return {"refused": was_refused, "requested": 768 * MIB, "again": refused(768 * MIB)}


def too_large():
    size = torch.cuda.get_device_properties(0).total_memory + GIB
    return {"refused": refused(size), "requested": size}


def fraction():
    cap(512 * MIB)
    kept.append(tensor(400 * MIB))
    return {"refused": refused(400 * MIB), "requested": 400 * MIB}


def cache():
    """PyTorch keeps 3 GiB that it does not use; what a library asks for would fit with them."""
    blocks = [tensor(GIB) for _ in range(3)]
    del blocks
    size = free() + GIB
    return {"refused": driver_alloc(size) == 2, "requested": size, "idle": 3 * GIB}


def full():
    """What is live is all that is in the way."""
    kept.append(tensor(3 * GIB))
    size = free() + GIB
    return {"refused": driver_alloc(size) == 2, "requested": size}


def neighbour():
    """Started beside a process that holds 4 GiB."""
    tensor(MIB)
    torch.cuda.empty_cache()
    size = free() + 2 * GIB
    return {"refused": driver_alloc(size) == 2, "requested": size}


def hold():
    kept.append(tensor(4 * GIB))
    print("held", flush=True)
    sys.stdin.read()
    return {}


def address_space():
    tensor(MIB)
    reserve, pointer, n = ctypes.CDLL("libcuda.so.1").cuMemAddressReserve, ctypes.c_uint64(), 0
    size = ctypes.c_size_t(1 << 40)
    while n < 1 << 20 and reserve(ctypes.byref(pointer), size, ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_uint64(0)) == 0:
        n += 1
    return {"refused": n < 1 << 20, "requested": 1 << 40, "reserved": n << 40}


truth = globals()[sys.argv[1]]()
torch.cuda.synchronize()
truth["stats"] = torch.cuda.memory_stats()
with open(sys.argv[2], "w") as out:
    json.dump(truth, out)
sys.stdout.flush()
os._exit(0)
