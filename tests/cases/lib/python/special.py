"""Allocations from threads, children, other interpreters, generated code, and source files of every kind."""
import ctypes
import importlib
import os
import shutil
import sys
import textwrap
import threading
import warnings
import zipfile

import classes
import plain
import truth
from truth import P, cu, note

HERE = os.path.dirname(os.path.abspath(__file__))
N_GENERATED = int(os.environ.get("N_GENERATED", "1000"))
skipped = {}


def threads():
    def worker(n):
        truth.enter()
        for i in range(n):
            plain.nested()
            plain.generators()
            cu(P(), note())
            generated(20)

    running = []
    for i in range(4):
        running.append(threading.Thread(target=worker, args=(i,)))
        running[-1].start()
        # while the thread starts
        cu(P(), note())
        plain.leaf()
    for thread in running:
        cu(P(), note())
        thread.join()

    class Own(threading.Thread):
        def run(self):
            truth.enter()
            cu(P(), note())

    own = Own()
    own.start()
    own.join()


def foreign_threads():
    """Not made by Python, with a call into Python and without."""
    libc = ctypes.CDLL(None)
    handle = ctypes.c_ulong()
    kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

    def body(argument):
        truth.enter()
        cu(P(), note())
        plain.nested()

    for _ in range(2):
        entry = kind(body)
        assert not libc.pthread_create(ctypes.byref(handle), None, entry, None)
        libc.pthread_join(handle, None)


def generated(n=N_GENERATED):
    """
    Code objects at the addresses of earlier ones, of the same length, from the same line of the same file, whose parts
    are where those of the earlier one were.
    """
    for i in range(n):
        scope = {"cu": cu, "P": P, "note": note}
        exec(compile("def made_%06d():\n    cu(P(), note())\n" % i, "<made>", "exec"), scope)
        scope["made_%06d" % i]()
        del scope
    for i in range(n // 4):
        scope = {"cu": cu, "P": P, "note": note}
        source = "\n" * (i % 7) + "cu(P(), note())\ndef f%d():\n  x = 1%s\n  cu(P(), note())\nf%d()\n" % (
            i, "\n" * (i % 11), i)
        exec(compile(source, "<made %d>" % (i % 5), "exec"), scope)
    evaluated = [eval("lambda: cu(P(), note())") for _ in range(20)]
    for function in evaluated:
        function()
    while evaluated:
        evaluated.pop(0)
        eval("lambda: cu(P(), note())")()


def replaced_code():
    """Names that no source could have."""
    def function():
        cu(P(), note())

    for name, file in (("", ""), ("with space\n", "with\nnewline"), ("\U0001f40d", "/\U0001f40d/\u00e9.py"),
                       ("\u00ff" * 300, "x" * 5000), ("n" * 70000, "short"), ('quote"\\', "back\\slash\t")):
        more = {"co_qualname": name} if sys.version_info >= (3, 11) else {}
        code = function.__code__.replace(co_name=name, co_filename=file, **more)
        exec(code)
        function.__code__ = code
        function()
    code = function.__code__.replace(co_name="far", co_firstlineno=2000000000)
    exec(code)


def long_functions():
    """Line tables of many kilobytes, lines of many kilobytes, and lines far apart."""
    many = "def many(cu, P, note):\n"
    for i in range(6000):
        many += "    x%d = (%d,\n%s\n  %d)\n" % (i % 50, i, "\n" * (i % 3), i)
        if i % 750 == 0:
            many += "    cu(P(), note())\n"
    many += "    cu(P(), note())\n"
    wide = "def wide(cu, P, note):\n    x = [" + "1 + len('%s')," % ("y" * 300) * 400 + "cu(P(), note())]; cu(P(), note())\n"
    far = "def far(cu, P, note):\n    cu(P(), note())\n" + "\n" * 70000 + "    cu(P(), note())\n    (1,\n" + "\n" * 300
    far += "    cu(P(), note()), [\n" + "\n" * 40000 + "cu(P(), note())])\n    cu(P(), note())\n"
    branches = "def branches(cu, P, note, n=0):\n"
    for i in range(300):
        branches += "    if n == %d:\n        cu(P(), note())\n    for x in range(1):\n        pass\n" % i
    for source in (many, wide, far, branches):
        scope = {}
        exec(compile(source, "long.py", "exec"), scope)
        for function in list(scope.values()):
            if callable(function):
                function(cu, P, note)
    for n in (0, 1, 64, 65, 150, 299):
        scope["branches"](cu, P, note, n)


MODULE = """from truth import P, cu, note
cu(P(), note())
class %(name)s:
    cu(P(), note())
    def %(name)s(self, %(name)s=1):
        return [cu(P(), note()), (lambda %(name)s: cu(P(), note()))(1)]
%(name)s().%(name)s()
"""


def write(path, text):
    with open(path, "wb") as out:
        out.write(text.encode())


def modules():
    """Imported from files with all sorts of names, from a zip file, and without their source."""
    folder = os.path.join(os.getcwd(), "modules.%d" % os.getpid())
    os.mkdir(folder)
    names = ["ascii", "gr\u00f6\u00dfe", "\u540d\u524d", "\U00020bb7\U00020bb7"]
    for name in names:
        write(os.path.join(folder, name + ".py"), MODULE % {"name": name})
    with zipfile.ZipFile(os.path.join(folder, "z.zip"), "w") as archive:
        archive.writestr("zipped/__init__.py", "from . import inner\n" + MODULE % {"name": "zipped"})
        archive.writestr("zipped/inner.py", MODULE % {"name": "inner"})
    write(os.path.join(folder, "sourceless.py"), MODULE % {"name": "sourceless"})
    import py_compile
    py_compile.compile(os.path.join(folder, "sourceless.py"), os.path.join(folder, "sourceless.pyc"),
                       "/no/such/dir/sourceless.py")
    os.remove(os.path.join(folder, "sourceless.py"))
    sys.path[:0] = [folder, os.path.join(folder, "z.zip")]
    importlib.invalidate_caches()
    for name in names + ["zipped", "sourceless"]:
        importlib.import_module(name)
        importlib.reload(sys.modules[name])
    # a name that is not UTF-8, and one that is relative
    odd = os.path.join(os.fsencode(folder), b"odd\xff.py")
    with open(odd, "wb") as out:
        out.write((MODULE % {"name": "odd"}).encode())
    for path in os.fsdecode(odd), os.path.relpath(os.path.join(folder, "ascii.py")):
        with open(path, "rb") as source:
            exec(compile(source.read(), path, "exec"), {"__name__": "odd"})
    del sys.path[:2]
    for name in names + ["zipped", "zipped.inner", "sourceless"]:
        del sys.modules[name]
    shutil.rmtree(folder)


NEWER = [
    ((3, 9), """
        @(lambda f: [cu(P(), note()), f][1])
        @[lambda f: [cu(P(), note()), f][1]][0]
        def decorated():
            cu(P(), note())
        decorated()
        """),
    ((3, 10), """
        class Point:
            __match_args__ = ("x",)
            x = property(lambda self: cu(P(), note()))
        def matching(value):
            match value:
                case [1, x] if cu(P(), note()):
                    pass
                case Point(x):
                    cu(P(), note())
                case {"k": y}:
                    cu(P(), note())
                case _:
                    cu(P(), note())
        for value in [1, 2], Point(), {"k": 1}, 5:
            matching(value)
        """),
    ((3, 11), """
        def groups():
            try:
                raise ExceptionGroup("g", [ValueError(cu(P(), note())), KeyError()])
            except* ValueError:
                cu(P(), note())
            except* KeyError as e:
                cu(P(), note())
            finally:
                cu(P(), note())
        groups()
        """),
    ((3, 12), """
        def generic[T: cu(P(), note())](x: T, y=cu(P(), note())):
            return [f"{(lambda: cu(P(), note()))()} {[cu(P(), note()) for _ in 'ab']}", cu(P(), note())]
        generic(1)
        generic.__type_params__[0].__bound__
        type Alias[T] = [cu(P(), note()), T]
        Alias.__value__
        class Holder[T]:
            cu(P(), note())
            values = [cu(P(), note()) for _ in range(2)]
        """),
    ((3, 14), """
        def annotated(x: cu(P(), note())) -> cu(P(), note()):
            pass
        annotated.__annotations__
        name = "t"
        template = t"{cu(P(), note())} {name}"
        """),
    ((3, 15), """
        def rows():
            yield [cu(P(), note())]
        [*row for row in rows()]
        {**{cu(P(), note()): 1} for _ in range(2)}
        list((*row for row in rows()))
        """),
]


def newer_syntax():
    for version, source in NEWER:
        if sys.version_info >= version:
            exec(compile(textwrap.dedent(source), "newer.py", "exec"), {"cu": cu, "P": P, "note": note})


IN_SUB = """
import sys
sys.path.insert(0, %r)
import itertools, threading, truth
truth.sizes, truth.construct, truth.context.value = itertools.count(%d), "sub_interpreter", %d
import classes, plain
for construct in plain.nested, plain.generators, classes.special_methods, plain.recursion_deep:
    construct()
def worker():
    truth.enter()
    plain.nested()
thread = threading.Thread(target=worker)
before = len(truth.records)
%s
outer = %r
if outer:
    truth.records[:] = [(size, name, outer) for size, name, frames in truth.records[:before]] + truth.records[before:]
truth.save(%r)
"""


def sub_interpreters():
    """
    Up to 3.11 a thread has one thread state that can be found without the GIL, the first: what is seen there are the frames
    that lead into the other interpreter.
    """
    try:
        interpreters = importlib.import_module("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    except ImportError:
        skipped["sub_interpreters"] = "no module for them"
        return
    create, run = interpreters.create, interpreters.run_string
    if sys.version_info >= (3, 13):
        create = lambda: interpreters.create("legacy")  # noqa: E731
    elif sys.version_info >= (3, 9):
        create = lambda: interpreters.create(isolated=False)  # noqa: E731
    in_thread = "thread.start(); thread.join()" if sys.version_info >= (3, 9) else ""

    def script(i, frame):
        outer = truth.frames_of(frame) if sys.version_info < (3, 12) else []
        return IN_SUB % (HERE, (i + 1) << 20, truth.context.value, in_thread, outer, ".sub%d" % i)

    for i in range(2):
        interpreter = create()
        failure = run(interpreter, script(i, sys._getframe()))
        assert failure is None, failure
        interpreters.destroy(interpreter)
        cu(P(), note())


def forks():
    """
    Children that use CUDA, of a process that has not: each has a trace of its own. A process that has used CUDA cannot hand
    it to its children.
    """
    def child():
        truth.start()
        del truth.records[:]
        plain.nested()
        plain.coroutines()
        threads()
        truth.save()

    def fork():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pid = os.fork()
        if not pid:
            status = 1
            try:
                child()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0

    fork()
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    truth.start()
    plain.nested()


def greenlets():
    try:
        import greenlet
    except ImportError:
        skipped["greenlets"] = "no module greenlet"
        return

    def outer(n):
        cu(P(), note())
        inner(n)

    def inner(n):
        for _ in range(n):
            cu(P(), note())
            plain.nested()
            main.switch()
        plain.generators()

    def starter(n):
        greens = [greenlet.greenlet(outer) for _ in range(3)]
        cu(P(), note())
        for green in greens:
            sorted([1], key=lambda x: green.switch(n))
        while not all(green.dead for green in greens):
            for green in greens:
                cu(P(), note())
                green.switch()

    main = greenlet.getcurrent()
    starter(6)


def hot_loops(n=20000):
    """
    Long enough for an interpreter that compiles (PYTHON_JIT) to do so. The allocations are where nothing else than before
    happens in Python, or it would leave the compiled code.
    """
    jit = getattr(sys, "_jit", None)
    active = jit.is_active if jit else int
    work = [()] * (n - 10) + [(1,)] * 10

    def allocate(x):
        return cu(P(), note())

    class Hot:
        seen = 0

        def method(self, i):
            self.seen += active()
            return any(map(allocate, work[i]))

    def numbers():
        for i in range(n):
            any(map(allocate, work[i]))
            yield i

    def loop(hot, numbers):
        for i in numbers:
            hot.method(i)
            any(map(allocate, work[i]))

    hot = Hot()
    loop(hot, range(n))
    loop(hot, numbers())
    assert hot.seen or not jit or not jit.is_enabled(), "nothing was compiled"


def evaluator():
    """A function of PEP 523 in the place of the interpreter's own, as torch.compile has it."""
    library = os.environ.get("EVALUATOR")
    if not library:
        skipped["evaluator"] = os.environ.get("NO_EVALUATOR", "not built")
        return
    evaluating = ctypes.PyDLL(library)
    evaluating.evaluator_start()
    try:
        for construct in classes.CONSTRUCTS:
            truth.construct = "evaluator, " + construct.__name__
            construct()
        truth.construct = "evaluator, threads"
        threads()
    finally:
        evaluating.evaluator_stop()
    evaluating.evaluator_calls.restype = ctypes.c_ulong
    assert evaluating.evaluator_calls() > 1000
    plain.nested()


CONSTRUCTS = [
    threads, foreign_threads, generated, replaced_code, long_functions, modules, newer_syntax, sub_interpreters, greenlets,
    hot_loops, evaluator,
]
