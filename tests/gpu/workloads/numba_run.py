import numba
import numpy
from numba import cuda


@cuda.jit
def double(values):
    i = cuda.grid(1)
    if i < values.size:
        values[i] *= 2


values = cuda.to_device(numpy.ones(1 << 20, dtype=numpy.float32))
double[(1 << 20) // 256, 256](values)
print("numba", numba.__version__, values.copy_to_host().sum())
