"""
What the test programs share: the allocation call, and the truth about the stack that it was made from.

    cu(P(), note())       allocates; the innermost frame is the one that this line is in
    cu_held(P(), note())  the same, without letting go of the GIL during the call

note() writes down the frames of its caller outwards, as sys._getframe() has them, and returns a size that no other
allocation of the process has: the trace is matched by it. Both calls must be on one line.
"""
import ctypes
import itertools
import json
import os
import sys

FIRST_SIZE = 1024
records = []
construct = "start"  # what is being tried
sizes = itertools.count(FIRST_SIZE)

cuda = ctypes.CDLL("libcuda.so.1")
cu = cuda.cuMemAlloc_v2
cu_held = ctypes.PyDLL("libcuda.so.1").cuMemAlloc_v2
P = ctypes.c_uint64
cu.argtypes = cu_held.argtypes = (ctypes.POINTER(P), ctypes.c_size_t)
context = ctypes.c_void_p()


def start():
    """Makes a context, current to this thread."""
    failed = cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or cuda.cuCtxSetCurrent(context)
    assert not failed, failed


def enter():
    """To be called first in a new thread."""
    cuda.cuCtxSetCurrent(context)


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)


def frames_of(frame):
    frames = []
    while frame:
        frames.append((frame.f_code.co_filename, name_of(frame.f_code), frame.f_lineno))
        frame = frame.f_back
    return frames


def note():
    size = next(sizes)
    records.append((size, construct, frames_of(sys._getframe(1))))
    return size


def save(suffix=""):
    with open("truth.%d%s.json" % (os.getpid(), suffix), "w") as out:
        json.dump(records, out)
