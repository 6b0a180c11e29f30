#!/usr/bin/env python3
"""An interpreter that comes after the first CUDA call, is not visible to dlsym(RTLD_DEFAULT), and goes before the last one."""
import glob
import json
import os
import re
import subprocess
import sys

BUILD = os.environ["BUILD_DIR"]


def libraries():
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    patterns = [f"{root}/versions/*/lib/libpython3.*.so.1.0", "/usr/lib/*/libpython3.*.so.1.0", "/usr/local/lib/libpython3.*.so.1.0"]
    found = {path: re.search(r"libpython3\.(\d+)\.so", path) for pattern in patterns for path in glob.glob(pattern)}
    return [(int(match[1]), path) for path, match in found.items() if match and 8 <= int(match[1]) <= 15]


def main():
    how = "python" if os.environ["MODE"] == "tsan" else "both"
    tried = []
    for minor, path in sorted(libraries()):
        home = os.path.dirname(os.path.dirname(path)) if path.startswith(os.path.expanduser("~")) else "/usr"
        trace = f"{minor}-{len(tried)}.vt"
        environ = dict(os.environ, LD_PRELOAD=f"{BUILD}/libvramtrace.so", VRAMTRACE_STACK=how, VRAMTRACE_OUTPUT=trace,
                       PYTHONHOME=home)
        done = subprocess.run([f"{BUILD}/cases/python_embed", path], env=environ, capture_output=True, text=True)
        if done.returncode == 77:
            continue
        assert done.returncode == 0, f"{path}: {done.returncode} {done.stderr}"
        dump = subprocess.run([f"{BUILD}/vramtrace", "dump", "--json", trace], capture_output=True, text=True)
        records = [json.loads(line) for line in dump.stdout.splitlines()]
        names = {r["code_id"]: r["function"] for r in records if r["record"] == "python_code"}
        stacks = {r["stack_id"]: r["python"] for r in records if r["record"] == "stack"}
        got = {r["bytes"] >> 10: [names[int(word, 16) >> 32] for word in stacks.get(r["stack_id"], [])]
               for r in records if r["record"] == "alloc"}
        inside = ["inner", "outer", "<module>"]
        assert got == {1: [], 2: [], 3: [], 4: inside, 5: inside, 6: [], 7: [], 8: []}, (path, got)
        python = [r for r in records if r["record"] == "python"]
        assert len(python) == 1 and python[0]["captured"] == 1, (path, python)
        tried.append(f"3.{minor}")
    if not tried:
        print("no shared libpython 3.8 to 3.15 here that this test knows to find")
        return 77
    print("embedded:", ", ".join(tried))
    return 0


sys.exit(main())
