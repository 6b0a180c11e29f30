"""Capture in global mode and replay of a CUDA graph; prints the result, which must not depend on the preload."""
import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).cuda()
torch.manual_seed(3)
x = torch.arange(64 * 16, device="cuda", dtype=torch.float32).reshape(16, 64) / 1000
with torch.no_grad():
    for p in model.parameters():
        p.copy_(torch.linspace(-1, 1, p.numel(), device="cuda").reshape(p.shape))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        model(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="global"):
        y = model(x)
        z = y.sum() * 2
    for _ in range(20):
        x.add_(0.001)
        graph.replay()
    torch.cuda.synchronize()
print(f"{z.item():.6f}")
