"""workers.py METHOD N: N workers of multiprocessing, started by METHOD, and a parent. The parent uses CUDA only with "spawn", before
it starts them. Each worker takes as many MiB as its number, from 1, and prints its pid and that number."""
import ctypes
import multiprocessing
import os
import sys

MIB = 1 << 20


def take(n_bytes):
    cuda = ctypes.CDLL("libcuda.so.1")
    context, block = ctypes.c_void_p(), ctypes.c_uint64()
    assert not cuda.cuInit(0)
    assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    assert not cuda.cuCtxSetCurrent(context)
    assert not n_bytes or not cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(n_bytes))


def work(number):
    take(number * MIB)
    os.write(1, f"{os.getpid()} {number}\n".encode())


if __name__ == "__main__":
    method, n = sys.argv[1], int(sys.argv[2])
    if method == "spawn":
        take(100 * MIB)
    context = multiprocessing.get_context(method)
    workers = [context.Process(target=work, args=(number + 1,)) for number in range(n)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.exit(any(worker.exitcode for worker in workers))
