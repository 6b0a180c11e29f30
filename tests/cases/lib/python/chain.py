"""
C that calls Python that calls C, in many ways: chain.py LIBRARY. What is written down for each allocation is the whole
stack as it must be shown: frames of Python and of the library, nothing else.
"""
import ctypes
import sys
import threading

import truth

library = ctypes.CDLL(sys.argv[1])
holding = ctypes.PyDLL(sys.argv[1])
KIND = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
for calls in library, holding:
    calls.chain_b.argtypes = (ctypes.c_size_t,)
b, b_held = library.chain_b, holding.chain_b
entered = set()  # code objects that only chain_a calls


def expected():
    """The size for an allocation by chain_b, whose stack is written down."""
    size, frame, stack = next(truth.sizes), sys._getframe(1), [("b_hidden",), ("chain_b",)]
    while frame:
        stack.append((frame.f_code.co_filename, truth.name_of(frame.f_code), frame.f_lineno))
        if frame.f_code in entered:
            stack += [("a_hidden",), ("chain_a",)]
        frame = frame.f_back
    truth.records.append((size, truth.construct, stack))
    return size


def through_c(function, argument=0, calls=library):
    """Calls function from chain_a."""
    entered.add(function.__code__)
    return calls.chain_a(KIND(function), argument)


def simple():
    def py_inner(n):
        return b(expected())

    def py_outer():
        assert through_c(py_inner) == 0
        assert through_c(py_inner, calls=holding) == 0

    py_outer()
    b(expected())
    b_held(expected())


def recursion():
    def py_level(n):
        b(expected())
        if n:
            inner(n)
        return 0

    def inner(n):
        through_c(py_level, n - 1)

    through_c(py_level, 4)


def mixed():
    """Other ways into the interpreter in between, which all have frames of C that are not ours."""
    class Lazy:
        def __getattr__(self, name):
            return inline(3)

        def __len__(self):
            return through_c(py_last) + 1

    def inline(n):
        return inline(n - 1) if n else [through_c(py_middle), b(expected())]

    def py_middle(n):
        return sorted([len(Lazy())], key=lambda x: b(expected()))[0] - 1

    def py_last(n):
        def generator():
            yield b(expected())
            yield from (through_c(py_leaf) for _ in range(2))

        return sum(generator())

    def py_leaf(n):
        try:
            raise KeyError
        except KeyError:
            return sum([b(expected()) for _ in range(2)])

    Lazy().anything
    through_c(py_middle)


def foreign():
    def py_thread(n):
        return b(expected()) or inner(n)

    def inner(n):
        return b(expected())

    entered.add(py_thread.__code__)
    size = next(truth.sizes)
    truth.records.append((size, "foreign", [("b_hidden",), ("chain_b",), ("run_job",)]))
    first = len(truth.records)
    library.chain_thread.argtypes = (ctypes.c_void_p, KIND, ctypes.c_size_t)
    assert library.chain_thread(truth.context, KIND(py_thread), size) == 0
    for record in truth.records[first:]:
        record[2].append(("run_job",))


def in_thread():
    truth.enter()
    for construct in simple, recursion, mixed:
        construct()


def threads():
    running = [threading.Thread(target=in_thread) for _ in range(2)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


truth.start()
for construct in simple, recursion, mixed, foreign, threads, simple:
    truth.construct = construct.__name__
    construct()
truth.save()
