"""
A training that does as many steps as it is told: torch_steps.py MODEL HISTORY. MODEL: transformer, resnet50, gpt2; HISTORY: what
PyTorch records itself (none, python, all). Each line of input is a number of steps; the answer is the time of each step in
microseconds, as JSON.
"""
import json
import sys
import time

import torch

import torch_models

torch.manual_seed(1)


def transformer():
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model = torch.nn.Sequential(
        torch.nn.Embedding(8000, 256), torch.nn.TransformerEncoder(layer, 4), torch.nn.Linear(256, 8000)).cuda()
    return model, torch.optim.AdamW(model.parameters()), torch.randint(8000, (16, 65))


def gpt2():
    model = torch_models.Gpt().cuda()
    return model, torch.optim.Adam(model.parameters()), torch.randint(50257, (2, 257))


def resnet50():
    model = torch_models.resnet(50).cuda()
    return model, torch.optim.SGD(model.parameters(), 0.01, momentum=0.9), (torch.randn(16, 3, 224, 224), torch.randint(1000, (16,)))


def main():
    if sys.argv[2] != "none":
        torch.cuda.memory._record_memory_history(stacks=sys.argv[2])
    model, optimizer, data = {"transformer": transformer, "gpt2": gpt2, "resnet50": resnet50}[sys.argv[1]]()

    def loss_of():
        """With the batch's way from page-locked memory."""
        if isinstance(data, tuple):
            images, labels = (part.pin_memory().cuda(non_blocking=True) for part in data)
            return torch.nn.functional.cross_entropy(model(images), labels)
        batch = data.pin_memory().cuda(non_blocking=True)
        return torch.nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    def step():
        begin = time.perf_counter_ns()
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        return (time.perf_counter_ns() - begin) / 1e3

    for _ in range(20):
        step()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps([step() for _ in range(int(line))]), flush=True)


main()
