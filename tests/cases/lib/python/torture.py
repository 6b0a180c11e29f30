"""Keeps the interpreter busy while every malloc allocates on the device: see torture.c. torture.py EVENTS"""
import ctypes
import gc
import json
import random
import sys
import sysconfig
import threading

import classes
import plain
import special
import truth

here = ctypes.CDLL(None)
here.torture_more.argtypes = (ctypes.c_long,)
here.torture_done.restype = ctypes.c_long
BUSY = [c for c in classes.CONSTRUCTS if c not in (plain.interpreter_callbacks, plain.recursion_deep)]


def worker(seed):
    truth.enter()
    order = random.Random(seed)
    for _ in range(2):
        for construct in order.sample(BUSY, len(BUSY)):
            construct()
            gc.collect(order.randrange(2))
        special.generated(20)
        [].append([Cycle() for _ in range(50)])


class Cycle:
    def __init__(self):
        self.me = self

    def __del__(self):
        del self.me


def main(n_events):
    truth.start()
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        here.torture_allocators()
    gc.set_threshold(50, 3, 3)
    here.torture_more(n_events)
    threads = [threading.Thread(target=worker, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    plain.interpreter_callbacks()
    for thread in threads:
        thread.join()
    n_done = here.torture_done()
    # What is left is for the end of the interpreter.
    here.torture_more(n_events // 4)
    print(json.dumps(n_done))


main(int(sys.argv[1]))
