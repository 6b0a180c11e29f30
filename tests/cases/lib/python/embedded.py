"""Run twice by embed.c, in one interpreter after the other. No module written in C can be imported here."""
import os
import sys

path = "truth.%d.json" % os.getpid()
first = 4096 if not os.path.exists(path) else 8192
lines = []


def note():
    size, frame, frames = first + len(lines), sys._getframe(1), []
    while frame:
        code = frame.f_code
        frames.append([code.co_filename, getattr(code, "co_qualname", code.co_name), frame.f_lineno])
        frame = frame.f_back
    lines.append('[%d, "embedded", %s]' % (size, str(frames).replace("'", '"')))
    return size


class Attributes:
    def __getattr__(self, name):
        return allocate(note())  # noqa: F821


def nested(n):
    return nested(n - 1) if n else allocate(note())  # noqa: F821


def generator():
    yield allocate(note())  # noqa: F821
    yield from (allocate(note()) for _ in range(3))  # noqa: F821


for _ in range(10):
    nested(5)
    Attributes().anything
    list(generator())
    sorted([2, 1], key=lambda x: nested(x))
    allocate(note())  # noqa: F821
old = open(path).read()[1:-1] + "," if first == 8192 else ""
with open(path, "w") as out:
    out.write("[" + old + ",".join(lines) + "]")
