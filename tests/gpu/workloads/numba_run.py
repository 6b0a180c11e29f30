import numpy

# numba 0.6x reaches for a name that numpy 2.5 has dropped.
if not hasattr(numpy, "row_stack"):
    numpy.row_stack = numpy.vstack
import numba
from numba import cuda


@cuda.jit
def double(values):
    i = cuda.grid(1)
    if i < values.size:
        values[i] *= 2


values = cuda.to_device(numpy.ones(1 << 20, dtype=numpy.float32))
double[(1 << 20) // 256, 256](values)
print("numba", numba.__version__, values.copy_to_host().sum())
