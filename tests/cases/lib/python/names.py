"""
Which of the code objects and lines in a file given could not have come from this interpreter: names.py FILE. FILE holds a list of
[source file, function, first line or null, line or null]. Prints those that are in no source file, as JSON.
"""
import dis
import json
import os
import re
import sys
import sysconfig
import types

import truth

MADE = re.compile(r"(<module>|made_\d{6}|f\d+|<lambda>)$")
STRING = re.compile(r"[\w.<>]+$")


def source_of(file):
    """The text of a source file, also of a frozen module; None when there is none."""
    frozen = re.match(r"<frozen ([\w.]+)>$", file)
    paths = [file]
    if frozen:
        base = os.path.join(sysconfig.get_path("stdlib"), *frozen.group(1).split("."))
        paths = [base + ".py", os.path.join(base, "__init__.py")]
    for path in paths:
        if os.path.isfile(path):
            with open(path, "rb") as source:
                return source.read()
    return None


def code_objects(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_objects(constant)


def known(file, cache):
    """By function name: (first line, all lines) of each code object of that name."""
    if file not in cache:
        text, names = source_of(file), {}
        for code in code_objects(compile(text, file, "exec", dont_inherit=True)) if text is not None else ():
            lines = {line for _, line in dis.findlinestarts(code)} | {code.co_firstlineno}
            names.setdefault(truth.name_of(code), []).append((code.co_firstlineno, lines))
        cache[file] = names if text is not None else None
    return cache[file]


def plausible(item, cache):
    file, function, first, line = item
    names = known(file, cache)
    if names is None:
        if file.startswith("<made"):
            return bool(MADE.match(function))
        # Modules that are frozen and not installed as source, and what namedtuple and its like compile.
        return bool(re.match(r"<(frozen [\w.]+|string|unknown|[\w .-]+)>$", file) and STRING.match(function))
    return any((first is None or first == known_first) and (line is None or line in lines)
               for known_first, lines in names.get(function, ()))


with open(sys.argv[1]) as items:
    seen = {}
    print(json.dumps([item for item in json.load(items) if not plausible(item, seen)]))
