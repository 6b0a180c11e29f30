#!/bin/sh
# A report on a Python program: the user's lines, in the order of calls, whoever called whom through C.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

if [ "$MODE" = tsan ]; then
	echo "no stacks under ThreadSanitizer"
	exit 77
fi

mkdir -p app/site-packages/torch
cat >app/site-packages/torch/memory.py <<'END'
def empty(cuda, address):
    return cuda.cuMemAlloc_v2(address, 2 << 20)
END
cat >app/app.py <<'END'
import ctypes, sys
sys.path.insert(0, sys.argv[1])
import torch.memory

cuda, libc = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
cuda.cuMemAlloc_v2.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
compare_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def allocate(n):
    address = ctypes.c_uint64()
    return cuda.cuMemAlloc_v2(ctypes.addressof(address), n)


def compare(a, b):
    return allocate(4 << 20)


def sort():
    libc.qsort((ctypes.c_int * 2)(), 2, 4, compare_type(compare))


def deep(n):
    return deep(n - 1) if n else [allocate(8 << 20) for _ in range(1)]


sort()
torch.memory.empty(cuda, ctypes.addressof(ctypes.c_uint64()))
deep(40)
END

record() { # TRACE [VARIABLE=VALUE]
	trace=$1
	shift
	traced_system VRAMTRACE_OUTPUT="$trace" VRAMTRACE_QUIET=1 "$@" python3 app/app.py app/site-packages
	"$vramtrace" report --json "$trace" >"$trace.json"
}
line() { # TEXT: its line in the program
	grep -n "$1" app/app.py | cut -d: -f1
}
# The entry whose stack has a function; functions and lines of its stack, native ones as their file's name.
entry() { # TRACE FUNCTION EXPRESSION
	json "$1.json" '[e for e in d["leaks"] if any(f["function"] == "'"$2"'" for f in e["stack"])][0]'"$3"
}
stack() { # TRACE FUNCTION
	entry "$1" "$2" '["stack"]' >frames.py
	python3 -c 'import sys; print(" ".join(
		f["function"].rsplit(".", 1)[-1] + ":" + str(f["line"]) if f["kind"] == "python"
		else f["module"].rsplit("/", 1)[-1].split(".")[0]
		for f in eval(open("frames.py").read()) if not f["internal"]))' |
		sed "s/ libffi\| _ctypes[^ ]*\|^libffi//g; s/^ *//; s/  */ /g"
}
expect() { # WHAT EXPECTED FOUND
	[ "$2" = "$3" ] || fail "$1: expected '$2', not '$3'"
}

record both.vt
if [ "$(json both.vt.json 'd["coverage"]["python_stacks"]')" = None ] ||
	[ "$(json both.vt.json 'd["coverage"]["python_stacks"]["captured"]')" = 0 ]; then
	echo "no frames of this interpreter: $("$vramtrace" info both.vt | grep ^python)"
	exit 77
fi
expect version "$(python3 -c 'import platform; print(platform.python_version().rstrip("+"))')" \
	"$(json both.vt.json 'd["traces"][0]["python"]')"

allocate=allocate:$(line 'return cuda.cuMemAlloc') compare=compare:$(line 'return allocate(4')
sort=sort:$(line 'libc.qsort') module="<module>:$(line '^sort()')"
stack both.vt compare >chain
case $(cat chain) in
"$allocate $compare lib"*" $sort $module") ;; # under a sanitizer, qsort is its own
*) fail "the chain through qsort: $(cat chain)" ;;
esac

deep=deep:$(line 'return deep(')
stack both.vt deep | tr ' ' '\n' | grep -c "^$deep\$" >count
expect recursion 41 "$(cat count)"
expect owner app.py "$(entry both.vt compare '["owner"]')"
expect package torch "$(entry both.vt empty '["owner"]')"

"$vramtrace" report both.vt >report.txt
grep -q "app.py  *compare:${compare#*:} > allocate app.py:${allocate#*:} " report.txt || fail "no headline: $(cat report.txt)"
"$vramtrace" leaks both.vt >leaks.txt
grep -q "^      #[0-9]* *allocate  app.py:${allocate#*:}\$" leaks.txt || fail "no line: $(cat leaks.txt)"
grep -q 'more frames (--all-frames)$' leaks.txt || fail "not folded: $(cat leaks.txt)"
interpreter='libpython3\|python3\.[0-9]*+0x\|_PyEval\|PyObject_\|Py_RunMain\|__libc_start'
grep "$interpreter" leaks.txt && fail "the interpreter's own frames are shown"
"$vramtrace" leaks --all-frames both.vt | grep -q "$interpreter" || fail "the interpreter's own frames are not shown"

# Python alone: nothing native is left.
record python.vt VRAMTRACE_STACK=python
expect alone "$allocate $compare $sort $module" "$(stack python.vt compare)"
expect alone True "$(json python.vt.json 'all(f["kind"] == "python" for l in d["leaks"] for f in l["stack"])')"
expect alone "['app.py', 'torch']" "$(json python.vt.json 'sorted({l["owner"] for l in d["leaks"]})')"
"$vramtrace" info python.vt | grep -q "^python  *3\..*, frames recorded" || fail "$("$vramtrace" info python.vt)"
