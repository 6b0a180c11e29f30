"""C++ exceptions thrown inside libtorch, on the CPU, on the GPU and by the allocator, arrive as Python exceptions."""
import torch

caught = 0
for attempt in range(100):
    try:
        torch.ones(2, 3, device="cuda") @ torch.ones(2, 3, device="cuda")
    except RuntimeError:
        caught += 1
    try:
        torch.empty(1 << 50, device="cuda")
    except torch.OutOfMemoryError:
        caught += 1
print("caught", caught)
