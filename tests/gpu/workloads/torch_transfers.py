"""Copies of PyTorch as they should and should not be: torch_transfers.py clean|pageable|offload|item|pin|rounded. Prints what
must be found, as tests/gpu/transfers.c does."""
import json
import sys

import torch

MIB = 1 << 20


def clean():
    """Batches of 64 MiB from workers, pinned by the loader, uploaded on the way; a power of two, for the allocator rounds up."""
    class Images(torch.utils.data.Dataset):
        def __len__(self):
            return 64 * 60

        def __getitem__(self, i):
            return torch.full((4, 256, 256), float(i)), i % 10

    loader = torch.utils.data.DataLoader(Images(), batch_size=64, num_workers=4, pin_memory=True, persistent_workers=True)
    with torch.device("cuda"):
        model = torch.nn.Sequential(torch.nn.Conv2d(4, 16, 7, stride=4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                                    torch.nn.Flatten(), torch.nn.Linear(16, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for images, labels in loader:
        images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    torch.cuda.synchronize()
    return []


def pageable():
    """Case C1."""
    tensors = [torch.ones(16 * MIB) for _ in range(50)]
    out = torch.empty(16 * MIB, device="cuda")
    for tensor in tensors:
        out.copy_(tensor)
    torch.cuda.synchronize()
    return [("pageable", 50, 50 * 64 * MIB)]


def offload():
    """Case C3: 20 layers, 20 steps."""
    layers = [torch.nn.Linear(2048, 2048) for _ in range(20)]
    x = torch.ones(16, 2048, device="cuda")
    for _ in range(20):
        for layer in layers:
            layer.to("cuda")
            layer(x)
            layer.to("cpu")
    return [("round_trip", None, None)]


def item():
    """Case C5."""
    x = torch.ones(4096, 4096, device="cuda")
    for _ in range(300):
        x = x @ x / 4096
        x[0, 0].item()
    return [("read_back", 300, 300 * 4)]


def pin():
    """Case C6; the caching allocator would keep the blocks, so memory is registered by hand."""
    cudart = torch.cuda.cudart()
    host, device = torch.ones(8 * MIB), torch.empty(8 * MIB, device="cuda")
    for _ in range(30):
        cudart.cudaHostRegister(host.data_ptr(), host.numel() * 4, 0)
        device.copy_(host, non_blocking=True)
        torch.cuda.synchronize()
        cudart.cudaHostUnregister(host.data_ptr())
    return [("pin_churn", 30, 30 * 32 * MIB)]


def rounded():
    """Case P1: 129.5 MiB, 2.25 GiB and 1.125 GiB."""
    kept = [torch.empty(n, dtype=torch.uint8, pin_memory=True) for n in (135790592, 2415919104, 1207959552)]
    out = [t.cuda(non_blocking=True) for t in kept]
    torch.cuda.synchronize()
    return [("pinned_rounding", len(out), (256 + 4096 + 2048) * MIB)]


found = {"clean": clean, "pageable": pageable, "offload": offload, "item": item, "pin": pin, "rounded": rounded}[sys.argv[1]]()
print(json.dumps([{"finding": f, "count": n, "bytes": size} for f, n, size in found]))
