"""Prints nanoseconds of processor time: of an event whose stack repeats, of one whose native stack is new, of one whose Python
stack is new (Python's own work included), of glibc's backtrace() and of stepping with libunwind; then the native frames.

Arguments: the library, levels of C frames below Python, levels of Python frames."""
import ctypes
import sys
import time

EVENT, BACKTRACE, STEP = range(3)
NEW_LEVELS = 14  # of call sites that come in twos
lib = ctypes.CDLL(sys.argv[1])
lib.bench_run.restype = ctypes.c_double
lib.bench_new.restype = ctypes.c_double
lib.bench_run.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long]
frames = int(sys.argv[2])


def repeated(levels):
    if levels > 1:
        return repeated(levels - 1)
    return [lib.bench_run(EVENT, frames, 300000), lib.bench_run(BACKTRACE, frames, 3000),
            lib.bench_run(STEP, frames, 1000), lib.bench_depth(frames), lib.bench_new(NEW_LEVELS)]


def new(levels, path):
    if not levels:
        return lib.bench_event()
    if path & 1:
        return new(levels - 1, path >> 1)
    else:
        return new(levels - 1, path >> 1)


assert lib.bench_prepare() == 0
event, backtrace, step, depth, native = repeated(int(sys.argv[3]) - 1)
begin = time.thread_time()
for i in range(1 << NEW_LEVELS):
    assert new(NEW_LEVELS, i) == 0
each = (time.thread_time() - begin) * 1e9 / (1 << NEW_LEVELS)
print(event, native, each, backtrace, step, depth)
