"""Ends while its threads allocate and free: exiting.py SEED."""
import ctypes
import random
import sys
import threading
import time

import truth

free = ctypes.CDLL("libcuda.so.1").cuMemFree_v2
free.argtypes = (ctypes.c_uint64,)


def allocate(new=ctypes.c_uint64, take=truth.cu, give=free):
    """Needs no global: those may be gone by the time of the last call."""
    address = new()
    if take(address, 512) == 0:
        give(address)


class Late:
    """Its destructor runs when the interpreter takes the modules apart."""

    def __init__(self):
        self.allocate = allocate

    def __del__(self, step=lambda allocate: allocate()):
        step(self.allocate)


def generator():
    while True:
        yield allocate()


def forever(nested=lambda x: allocate() or 0):
    truth.enter()
    for _ in generator():
        sorted([1, 2], key=nested)


truth.start()
order = random.Random(int(sys.argv[1]))
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
late = Late()
time.sleep(order.random() * 0.02)
allocate()
