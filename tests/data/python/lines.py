#!/usr/bin/env python3
"""Prints line tables of awkward functions, and what this interpreter makes of them; see tests/data/README.md.

One code object a line: version, enum vt_line_table, first line, the table in hex ("-": empty), and where lines begin:
OFFSET:LINE up to the next one, "-" for no line; the last one is the end of the code."""
import ctypes
import sys

line_of = ctypes.pythonapi.PyCode_Addr2Line
line_of.argtypes = [ctypes.py_object, ctypes.c_int]

SOURCES = {
    # A module begins on line 1 with something that is on no line.
    "module": "import sys\n\n\nvalue = [\n    1,\n    sys,\n]\ndel value\n",
    # Further than one step reaches, in lines and in code.
    "gaps": "def f(a):\n" + "\n" * 200 + "    b = a" + "\n" * 66000 + "    return (b + " +
            " + ".join(f"a[{i}]" for i in range(60)) + ")\n",
    # Back to an earlier line.
    "call": "def f(a, b):\n    return a(\n        b(1),\n        b(\n            2),\n        *b(3),\n        k=b(4),\n    )\n",
    "loop": "def f(n):\n    while n:\n        for i in (\n            range(n)\n        ):\n            if i:\n"
            "                continue\n            n -= 1\n        else:\n            break\n    return n\n",
    # Code on no line: cleaning up.
    "try": "def f(a):\n    with a as b:\n        try:\n            b()\n        except (\n            ValueError\n        ) as e:\n"
           "            raise KeyError from e\n        finally:\n            del b\n",
    # Cells and arguments are set up before the first line.
    "closure": "def f(a):\n    b = 1\n\n    def g():\n        nonlocal b\n        b += a\n        return lambda: (\n            b)\n    return g\n",
    "generator": "def f(a):\n    x = yield\n    yield from (\n        b for b in a\n        if b\n    )\n    return x\n",
    "async": "async def f(a):\n    async with a as b:\n        async for c in b:\n            await c(\n                b\n            )\n",
    "class": "@print\n@type(\n    print\n)\nclass F(\n    object\n):\n    '''text'''\n\n    x = 1\n\n    def f(self):\n        pass\n",
    # Columns that do not fit into a byte, and an end far from its start.
    "columns": "def f(a):\n    " + "long_name_" * 40 + " = a; a = a.b(a); a = a[" + " " * 300 + "a]\n    return (a" + "\n" * 300 +
               "        + a)\n",
}


def kind():
    return 1 if sys.version_info < (3, 10) else 2 if sys.version_info < (3, 11) else 3


def table(code):
    return code.co_lnotab if kind() == 1 else code.co_linetable


def runs(code):
    found, last = [], None
    for offset in range(0, len(code.co_code), 2):
        line = line_of(code, offset)
        if line != last:
            found.append(f"{offset}:{line if line > 0 else '-'}")
        last = line
    return ",".join(found + [f"{len(code.co_code)}:-"])


def each(code):
    yield code
    for const in code.co_consts:
        if hasattr(const, "co_code"):
            yield from each(const)


print(f"# {sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}")
for name, source in SOURCES.items():
    for code in each(compile(source, name, "exec")):
        print(f"{sys.version_info.major}.{sys.version_info.minor}", kind(), code.co_firstlineno, table(code).hex() or "-", runs(code))
