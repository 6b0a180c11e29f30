"""torch_processes.py WAY FOLDER: several processes on one GPU. Each that uses CUDA writes FOLDER/PID.json: what PyTorch and the driver
say of it while all hold what they have.

  ipc     two workers of "spawn" look at a tensor of the parent, beside their own
  fork    two workers of "fork", before the parent uses CUDA itself
  loader  two workers of a DataLoader with pinned memory, which use no CUDA
  idle    a worker that makes a context, and allocates nothing
  rank    one rank of torchrun: rank R holds R + 1 times as much
"""
import json
import os
import pathlib
import sys

import torch
import torch.multiprocessing as mp

MIB = 1 << 20
FOLDER = pathlib.Path(sys.argv[2])
kept = []  # up to the end: what is freed behind what was said would not be as it was said


def take(megabytes):
    kept.append(torch.zeros(megabytes * MIB, dtype=torch.uint8, device="cuda"))
    torch.cuda.synchronize()


def say(name):
    stats, (free, total) = torch.cuda.memory_stats(), torch.cuda.mem_get_info()
    truth = {"pid": os.getpid(), "name": name, "allocated": stats.get("allocated_bytes.all.current", 0),
             "reserved": stats.get("reserved_bytes.all.current", 0), "peak_reserved": stats.get("reserved_bytes.all.peak", 0),
             "used": total - free}
    (FOLDER / f"{os.getpid()}.json").write_text(json.dumps(truth))


def together(name, barrier):
    """All hold what they have while each says so, and nobody goes before."""
    barrier.wait()
    say(name)
    barrier.wait()


def share(queue, number, barrier, done):
    tensor = queue.get()
    assert int(tensor[0]) == 7
    take(32 * (number + 1))
    together(f"worker {number}", barrier)
    del tensor
    done.wait()
    os._exit(0)


def alone(number, barrier):
    take(64 * (number + 1))
    together(f"worker {number}", barrier)
    os._exit(0)


def touch(barrier):
    torch.cuda.synchronize()
    together("idle worker", barrier)
    os._exit(0)


def run_ipc():
    context = mp.get_context("spawn")
    queue, barrier, done = context.Queue(), context.Barrier(3), context.Event()
    workers = [context.Process(target=share, args=(queue, number, barrier, done)) for number in range(2)]
    for worker in workers:
        worker.start()
    shown = torch.full((256 * MIB,), 7, dtype=torch.uint8, device="cuda")
    for _ in workers:
        queue.put(shown)
    kept.append(shown)
    together("parent", barrier)
    done.set()
    return workers


def run_fork():
    context = mp.get_context("fork")
    barrier = context.Barrier(3)
    workers = [context.Process(target=alone, args=(number, barrier)) for number in range(2)]
    for worker in workers:
        worker.start()
    take(16)
    together("parent", barrier)
    return workers


def run_idle():
    context = mp.get_context("spawn")
    barrier = context.Barrier(2)
    worker = context.Process(target=touch, args=(barrier,))
    worker.start()
    take(128)
    together("parent", barrier)
    return [worker]


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, i):
        return torch.full((1024,), float(i))


def run_loader():
    model = torch.nn.Linear(1024, 1024).cuda()
    kept.append(model)
    for batch in torch.utils.data.DataLoader(Numbers(), batch_size=16, num_workers=2, pin_memory=True,
                                             multiprocessing_context="fork"):
        model(batch.cuda(non_blocking=True)).sum().backward()
    torch.cuda.synchronize()
    say("parent")
    return []


def run_rank():
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    take(512 * (rank + 1))
    dist.barrier()
    say(f"rank {rank}")
    dist.barrier()
    return []


if __name__ == "__main__":
    processes = {"ipc": run_ipc, "fork": run_fork, "loader": run_loader, "idle": run_idle, "rank": run_rank}[sys.argv[1]]()
    for process in processes:
        process.join()
    # Nor does Python free anything as it ends.
    sys.stdout.flush()
    os._exit(any(process.exitcode for process in processes))
