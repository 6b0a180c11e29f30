"""
PyTorch allocates below stacks of many kinds, for SECONDS: torch_variety.py SECONDS SEED KIND. KIND: paths (nests of Python and
C++, at random, most of them again and again as in a program that runs its steps), train (steps of small models of many kinds),
threads (both, in threads of their own). Prints how many rounds there were and, by name, what failed how often.
"""
import collections
import contextlib
import copy
import ctypes
import functools
import io
import json
import random
import re
import sys
import threading
import time

import torch
import torch.utils.checkpoint
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = "cuda"
END = time.monotonic() + float(sys.argv[1])
SEED, KIND = int(sys.argv[2]), sys.argv[3]
failed = collections.Counter()
n_rounds = collections.Counter()
here = threading.local()  # .random, .budget: allocations left in this path


# --- Where an allocation is made --------------------------------------------------------------------------------------

def leaf():
    """Most need no kernel: what the processes of one test share is the GPU, not the processor."""
    here.budget -= 1
    if not here.random.randrange(12):
        here.random.choice(KERNELS)()
    else:
        here.random.choice(EMPTIES)()


base = torch.ones(24, 24, device=DEVICE)
linear = nn.Linear(24, 24).to(DEVICE)
EMPTIES = (
    lambda: torch.empty(here.random.randrange(1, 5000), device=DEVICE),
    lambda: torch.empty_like(base),
    lambda: base.new_empty((3, 5)),
    lambda: torch.empty_strided((4, 4), (4, 1), device=DEVICE),
    lambda: torch.empty((7, 7), dtype=torch.bfloat16, device=DEVICE),
    lambda: [torch.empty(n, device=DEVICE) for n in (1, 600, 90000)],
    lambda: base.new_empty((8, 8)).resize_(64, 64),
    lambda: torch.empty(64, device=DEVICE).untyped_storage().resize_(4096),
)
KERNELS = (
    lambda: base + 1,
    lambda: torch.cat((base, base)),
    lambda: linear(base),
    lambda: base.clone().mul_(2).sum(),
    lambda: base.to(torch.float16),
    lambda: base.t().contiguous(),
    lambda: torch.stack([base, base]).softmax(0),
    lambda: torch.einsum("ij,jk->ik", base, base),
    lambda: torch.randn(10, device=DEVICE),
    lambda: copy.deepcopy(linear),
    lambda: torch.vmap(lambda row: row * 2)(base),
    lambda: torch.save(base, io.BytesIO()),
    lambda: scripted(base),
)


@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = torch.relu(x + 1)
    return x


# --- What lies between ------------------------------------------------------------------------------------------------

def descend(depth):
    if here.budget > 0 and not here.random.randrange(3):
        leaf()
    if depth > 0 and here.budget > 0:
        here.random.choice(SHAPES)(depth - 1)
    if here.budget > 0 and not here.random.randrange(3):
        leaf()


def shape_call(depth):
    descend(depth)


def shape_recursion(depth, more=None):
    more = here.random.randrange(40) if more is None else more
    if more:
        return shape_recursion(depth, more - 1)
    return descend(depth)


def shape_map(depth):
    list(map(descend, [depth]))


def shape_comprehension(depth):
    return [x for x in (descend(depth) for _ in range(1))]


def shape_sort(depth):
    sorted([2, 1], key=lambda n: descend(depth) or n)


def shape_compare(depth):
    def compare(a, b):
        descend(depth)
        return a - b

    sorted([2, 1], key=functools.cmp_to_key(compare))


def shape_partial(depth):
    functools.partial(descend, depth)()


def shape_generator(depth):
    def generate():
        try:
            yield descend(depth)
        finally:
            leaf()

    for _ in generate():
        break


def shape_coroutine(depth):
    async def inner():
        descend(depth)

    async def outer():
        await inner()

    with contextlib.suppress(StopIteration):
        outer().send(None)


def shape_context(depth):
    @contextlib.contextmanager
    def context():
        leaf()
        yield
        leaf()

    with context(), torch.no_grad():
        descend(depth)


def shape_exception(depth):
    try:
        try:
            torch.empty(-1, device=DEVICE)
        finally:
            leaf()
    except RuntimeError:
        descend(depth)


def shape_regex(depth):
    re.sub("a", lambda match: descend(depth) or "", "a")


def shape_json(depth):
    json.loads('{"a": {}}', object_hook=lambda found: leaf())
    json.dumps(object(), default=lambda found: descend(depth))


class Special:
    def __init__(self, depth):
        self.depth = depth

    def __getattr__(self, name):
        return descend(self.__dict__["depth"])

    def __add__(self, other):
        return descend(self.depth)

    def __hash__(self):
        descend(self.depth)
        return 1

    def __eq__(self, other):
        return True

    def __iter__(self):
        yield descend(self.depth)

    def __del__(self):
        torch.empty(5, device=DEVICE)


def shape_special(depth):
    x = Special(depth)
    (lambda: x.absent, lambda: x + x, lambda: {x: 1}, lambda: list(x))[here.random.randrange(4)]()


def shape_ctypes(depth):
    ctypes.CFUNCTYPE(None)(lambda: descend(depth))()


libc = ctypes.CDLL(None)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def shape_qsort(depth):
    @COMPARE
    def compare(a, b):
        descend(depth)
        return 0

    libc.qsort((ctypes.c_int * 2)(2, 1), ctypes.c_size_t(2), ctypes.c_size_t(4), compare)


class Module(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.depth = depth
        self.register_forward_hook(lambda *unused: leaf())

    def forward(self, x):
        descend(self.depth)
        return x


def shape_module(depth):
    nn.Sequential(nn.Identity(), Module(depth))(base)


class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, depth, backward):
        ctx.depth = depth
        if not backward:
            descend(depth)
        ctx.is_backward = backward
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        """In the thread of the device."""
        prepare(ctx.depth, 5)
        if ctx.is_backward:
            descend(ctx.depth)
        return gradient, None, None


def shape_function(depth):
    Function.apply(base, depth, False)


def shape_backward(depth):
    with torch.enable_grad():
        x = torch.empty(4, device=DEVICE, requires_grad=True)
        Function.apply(x, depth, True).backward(torch.empty(4, device=DEVICE))


def shape_checkpoint(depth):
    torch.utils.checkpoint.checkpoint(lambda x: descend(depth) or x, base, use_reentrant=False)


class Subclass(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        leaf()
        return super().__torch_function__(function, types, args, kwargs or {})


def shape_subclass(depth):
    base.as_subclass(Subclass).new_empty(3)
    descend(depth)


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        leaf()
        return function(*args, **(kwargs or {}))


def shape_mode(depth):
    with Mode():
        torch.empty(3, device=DEVICE)
        descend(depth)


SHAPES = [shape for name, shape in sorted(globals().items()) if name.startswith("shape_")]


def prepare(seed, budget):
    here.random, here.budget = random.Random(seed), budget


def attempt(name, call):
    try:
        call()
    except Exception as error:
        failed[f"{name}: {type(error).__name__}: {str(error)[:80]}"] += 1


def paths(seed):
    """Five paths that come again 30 times, and 30 that come once."""
    for round in range(30):
        for path in range(6):
            prepare(seed * 1000 + (path if path < 5 else 100 + round), 60)
            attempt("paths", lambda: descend(12))
        if time.monotonic() > END:
            return


# --- Training ---------------------------------------------------------------------------------------------------------

class Recurrent(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell, self.head = cell(16, 32, 2, batch_first=True), nn.Linear(32, 8)

    def forward(self, x):
        return self.head(self.cell(x)[0])


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
        return x


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)


def convolutions():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3), nn.Flatten())


MODELS = (
    (lambda: nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 4)), (16,)),
    (convolutions, (3, 16, 16)),
    (lambda: Recurrent(nn.LSTM), (9, 16)),
    (lambda: Recurrent(nn.GRU), (7, 16)),
    (encoder, (11, 32)),
    (Checkpointed, (32,)),
    (lambda: nn.Sequential(nn.Conv1d(4, 8, 3), nn.GroupNorm(2, 8), nn.SiLU(), nn.ConvTranspose1d(8, 4, 3)), (4, 20)),
)
OPTIMIZERS = (
    lambda p: torch.optim.SGD(p, 0.01, momentum=0.9),
    lambda p: torch.optim.AdamW(p),
    lambda p: torch.optim.Adam(p, foreach=False),
    lambda p: torch.optim.Adam(p, fused=True),
    lambda p: torch.optim.RMSprop(p, 0.01),
    lambda p: torch.optim.Adagrad(p, 0.01),
)


def train(seed):
    order = random.Random(seed)
    make, shape = order.choice(MODELS)
    model = make().to(DEVICE)
    optimizer = order.choice(OPTIMIZERS)(model.parameters())
    is_mixed, set_to_none, clips = order.random() < 0.4, order.random() < 0.7, order.random() < 0.3
    infers = order.random() < 0.2
    for step in range(40):
        x = torch.randn(order.randrange(2, 6), *shape).to(DEVICE, non_blocking=True)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=is_mixed), torch.inference_mode(infers):
            loss = model(x).float().square().mean()
        if infers:
            continue
        optimizer.zero_grad(set_to_none=set_to_none)
        loss.backward(retain_graph=step % 7 == 0)
        if clips:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0:
            loss.item()
        if time.monotonic() > END:
            return


def work(kind, seed):
    prepare(seed, 0)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream) if seed % 2 else contextlib.nullcontext():
        while time.monotonic() < END:
            n_rounds[kind] += 1
            attempt(kind, functools.partial({"paths": paths, "train": train}[kind], seed))
            seed += 1000


def main():
    torch.manual_seed(SEED)
    if KIND != "threads":
        work(KIND, SEED)
    else:
        threads = [threading.Thread(target=work, args=(("paths", "train")[i % 2], SEED + i)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    torch.cuda.synchronize()
    print(json.dumps({"rounds": n_rounds, "failed": dict(failed.most_common(5))}))


if __name__ == "__main__":
    main()
