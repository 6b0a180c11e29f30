import cupy
import numpy

host = numpy.ones((1024, 1024), dtype=numpy.float32)
total = cupy.zeros((), dtype=cupy.float32)
for _ in range(20):
    total += (cupy.asarray(host) @ cupy.asarray(host)).sum()
print("cupy", cupy.__version__, float(total.get()))
