"""Traces for the page: a service that leaks and once runs out of memory; and one of hostile names everywhere."""
import random

import trace_writer

MIB = 1 << 20
MS = 1_000_000
SEGMENT = 64 * MIB
HOSTILE = [b"</script><script>window.evil = 1; alert(1)</script>", b"<img src=x onerror='window.evil = 2'>", b'"\'><b>&lt;', b"new\nline\r\n",
           b"\x00\x01\x1b[31mred\x07", b"\xff\xfe not UTF-8 \xc3", b"\xc2\x9b C1", b"\xe2\x80\xae bidi \xe2\x81\xa6", b"<!-- --!> ]]>",
           b"\xe2\x80\xa8line\xe2\x80\xa9", b"", b"n" * 5000, b"__proto__", b"constructor"]


class Story:
    def __init__(self, like):
        self.trace = trace_writer.Trace(like)
        self.put = self.trace.put
        self.codes, self.stacks = {}, {}

    def code(self, file, function):
        if (file, function) not in self.codes:
            self.codes[file, function] = len(self.codes) + 1
            self.put("python_code", code_id=self.codes[file, function], first_line=10, line_table=0, file=file, function=function)
        return self.codes[file, function]

    def stack(self, *calls):
        """Innermost first, each "file function"."""
        if calls not in self.stacks:
            python = [self.code(*map(str.encode, call.split(" "))) << 32 | 1 << 31 for call in calls]
            self.stacks[calls] = len(self.stacks) + 1
            self.put("stack", time_ns=1, stack_id=self.stacks[calls], frames=[], python=python)
        return self.stacks[calls]


def begin(story, memory):
    story.put("process", pid=4242, host=b"gpu01", exe=b"/usr/bin/python3", cmdline=b"python3\0serve.py\0")
    story.put("driver", version=13000, path=b"libcuda.so.1")
    story.put("device", ordinal=0, total_bytes=memory, page_bytes=2 * MIB, name=b"Made-up GPU")
    story.put("api", api_id=1, name=b"cuMemAlloc_v2")
    story.put("allocator", time_ns=1, allocator_id=1, layer=1, device=0, name=b"torch", version=b"2.11.0")


def service(like, path):
    """Weights, then requests: each takes and gives back activations, and keeps 2 MiB; one is too large for what is left."""
    story, pick = Story(like), random.Random(5)
    put, memory = story.put, 2048 * MIB
    main, lib = "/srv/serve.py main", "/usr/lib/python3/site-packages/torch/nn/"
    load = [story.stack(f"{lib}layers.py Layer{i}.load", "/srv/serve.py load", main) for i in range(6)]
    step = [story.stack(f"{lib}layers.py Layer{i}.forward", "/srv/serve.py handle", main) for i in range(12)]
    leak = story.stack("/srv/cache.py Cache.put", "/srv/serve.py remember", "/srv/serve.py handle", main)
    large = story.stack("/srv/serve.py batch", "/srv/serve.py handle", main)
    scratch = story.stack("/srv/serve.py workspace", main)
    begin(story, memory)
    state = {"now": 5 * MS, "segment": 0x7f0000000000, "free": [], "held": 0, "leak": 0}

    def tick(ns):
        state["now"] += ns
        return state["now"]

    def take(bytes, stack):
        """The first hole that is large enough, else a new segment."""
        for i, (address, size) in enumerate(state["free"]):
            if size >= bytes:
                state["free"][i:i + 1] = [(address + bytes, size - bytes)] if size > bytes else []
                break
        else:
            address, size = state["segment"], max(SEGMENT, bytes)
            state["segment"] += 2 * size
            state["held"] += size
            put("alloc", time_ns=tick(9000), api_id=1, kind=1, device=0, context_id=1, address=address, bytes=size, stack_id=stack)
            put("memory", time_ns=tick(1000), device=0, free_bytes=memory - 300 * MIB - state["held"], total_bytes=memory)
            if size > bytes:
                state["free"].append((address + bytes, size - bytes))
        put("block_alloc", time_ns=tick(40000), allocator_id=1, address=address, bytes=bytes, stack_id=stack)
        return address, bytes

    def give(block):
        put("block_free", time_ns=tick(20000), allocator_id=1, address=block[0], bytes=block[1])
        state["free"] = sorted(state["free"] + [block])
        merged = []
        for address, size in state["free"]:
            if merged and sum(merged[-1]) == address and address % (2 * SEGMENT):
                merged[-1] = (merged[-1][0], merged[-1][1] + size)
            else:
                merged.append((address, size))
        state["free"] = merged

    def phase(name, is_begin):
        put("phase", time_ns=tick(1000), action=1 if is_begin else 2, told=1, thread_id=7, name=name, domain=b"")

    put("memory", time_ns=tick(1), device=0, free_bytes=memory - 300 * MIB, total_bytes=memory)
    phase(b"load", True)
    weights = [take(24 * MIB, stack) for stack in load]
    put("alloc", time_ns=tick(9000), api_id=1, kind=1, device=0, context_id=1, address=0x7e0000000000, bytes=96 * MIB, stack_id=scratch)
    for i in range(30):
        put("alloc", time_ns=tick(9000), api_id=1, kind=1, device=0, context_id=1, address=0x7e4000000000 + i * 131072, bytes=70000,
            stack_id=scratch)
    state["held"] += 98 * MIB
    phase(b"load", False)
    tick(40 * MS)
    phase(b"serve", True)
    for request in range(60):
        put("mark", time_ns=tick(2 * MS), told=1, name=f"request {request}".encode())
        blocks = [take(MIB * pick.randint(4, 20), stack) for stack in step]
        if request == 35:
            blocks.append(take(400 * MIB, large))
        if request == 45:
            put("failure", time_ns=tick(9000), api_id=1, kind=1, device=0, bytes=1200 * MIB, stack_id=large, result=2)
            put("memory", time_ns=tick(1), device=0, free_bytes=memory - 300 * MIB - state["held"], total_bytes=memory)
            put("block_failure", time_ns=tick(1000), allocator_id=1, bytes=1200 * MIB, stack_id=large)
        take(2 * MIB, leak)
        state["leak"] += 2 * MIB
        for block in reversed(blocks):
            give(block)
    phase(b"serve", False)
    give(weights.pop())
    story.trace.write(path)
    return {"leak": "Cache.put", "leak_bytes": state["leak"], "peak": "batch"}


def hostile(like, path):
    story = Story(like)
    put = story.put
    put("process", pid=4242, host=HOSTILE[0], exe=b"/bin/" + HOSTILE[1], cmdline=b"\0".join(HOSTILE[:6]) + b"\0")
    put("driver", version=13000, path=b"libcuda.so.1")
    put("device", ordinal=0, total_bytes=1 << 36, page_bytes=2 * MIB, name=HOSTILE[0])
    put("api", api_id=1, name=HOSTILE[1])
    put("module", time_ns=1, start=0x10000, end=0x20000, bias=0x10000, path=b"/lib/" + HOSTILE[0])
    put("allocator", time_ns=1, allocator_id=7, device=0, name=HOSTILE[0], version=HOSTILE[1])
    for i, name in enumerate(HOSTILE, 1):
        put("python_code", code_id=i, first_line=i, line_table=0, file=HOSTILE[-i], function=name)
        put("stack", time_ns=1, stack_id=i, frames=[0x10010 + i, 0x999999], python=[i << 32 | 1 << 31])
        put("phase", time_ns=10 * i, action=1, told=1, thread_id=i, name=name[:100], domain=HOSTILE[-i][:100])
        put("mark", time_ns=10 * i, told=1, name=name[:100])
        put("alloc", time_ns=10 * i + 1, api_id=1, kind=1, device=0, context_id=1, address=i << 24, bytes=MIB << i % 4, stack_id=i)
        put("block_alloc", time_ns=10 * i + 2, allocator_id=7, address=i << 24, bytes=1 << (9 + i % 8), stack_id=i)
        put("copy", time_ns=10 * i + 3, api_id=1, direction=1, device=0, dst=i << 24, src=4096, bytes=4096, stack_id=i)
    put("failure", time_ns=1000, api_id=1, kind=1, device=0, bytes=1 << 40, stack_id=1, result=2)
    put("block_failure", time_ns=1001, allocator_id=7, bytes=1 << 40, stack_id=2)
    story.trace.write(path)
