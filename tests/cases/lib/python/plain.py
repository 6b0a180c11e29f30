"""Allocations from functions, generators, coroutines and callbacks. Most functions here are one construct each."""
import asyncio
import contextlib
import ctypes
import functools
import gc
import itertools
import re
import signal
import sys
import weakref

from truth import P, cu, cu_held, note


def leaf():
    cu(P(), note())


def nested():
    def one():
        two(); cu(P(), note())

    def two():
        # the call is further up than the line that it belongs to
        (lambda *x: None)(
            three(),
            cu(P(), note()),
        )

    def three():
        for _ in range(2):
            cu(P(), note())
        leaf()
        if True:
            cu(P(), note()); cu(P(), note())

    one()
    two()
    three()


def arguments():
    def defaults(a=cu(P(), note()), *rest, b=cu(P(), note()), **more):
        return cu(P(), note())

    defaults(1, 2, 3, b=4, c=5)
    defaults(*[1, 2], **{"d": cu(P(), note())})
    (lambda: cu(P(), note()))()
    (lambda x: x + cu(P(), note()))(1)
    max(cu(P(), note()), 2, key=lambda x: cu(P(), note()))


def recursion_shallow(n=20):
    if n % 2:
        cu(P(), note())
    if n:
        recursion_shallow(
            n - 1
        )
    else:
        cu(P(), note())


def recursion_deep(n=400):
    """Deeper than the recorder keeps."""
    if n:
        recursion_deep(n - 1)
    elif n == 0:
        cu(P(), note())


def recursion_through_c(n=25):
    list(map(recursion_through_c, [n - 1])) if n else cu(P(), note())
    if n % 5 == 0:
        cu(P(), note())


def released_and_held():
    for _ in range(3):
        cu(P(), note())
        cu_held(P(), note())


def comprehensions():
    [cu(P(), note()) for _ in range(2)]
    {cu(P(), note()) for _ in range(2)}
    {i: cu(P(), note()) for i in range(2)}
    [[cu(P(), note()) for _ in range(2)] for _ in range(2)]
    list(cu(P(), note()) for _ in range(2))
    sum(x for x in (cu(P(), note()) for _ in range(2)))
    [leaf() for _ in range(2) if not cu(P(), note())]
    [
        (cu(P(), note()),
         leaf())
        for _ in range(2)
    ]


def generators():
    def generator():
        cu(P(), note())
        try:
            while True:
                got = yield cu(P(), note())
                cu(P(), note()) if got else leaf()
        except KeyError:
            cu(P(), note())
            yield
        finally:
            cu(P(), note())

    def outer():
        yield from generator()

    for make in (generator, outer):
        running = make()
        next(running)
        running.send(1)
        running.send(None)
        running.throw(KeyError())
        running.close()
        closed = make()
        next(closed)
        closed.close()
        dropped = make()
        next(dropped)
        del dropped
    for _ in zip(itertools.islice(generator(), 3), itertools.islice(outer(), 3)):
        cu(P(), note())
    sorted(itertools.islice(generator(), 3), key=lambda x: cu(P(), note()))


def coroutines():
    class Manager:
        async def __aenter__(self):
            cu(P(), note())
            await asyncio.sleep(0)
            cu(P(), note())

        async def __aexit__(self, *error):
            cu(P(), note())

    class Awaitable:
        def __await__(self):
            cu(P(), note())
            yield
            cu(P(), note())

    async def numbers():
        try:
            for i in range(3):
                await asyncio.sleep(0)
                cu(P(), note())
                yield i
        finally:
            cu(P(), note())

    async def worker(n):
        cu(P(), note())
        await asyncio.sleep(0)
        if n:
            await worker(n - 1)
        cu(P(), note())

    async def fails():
        await asyncio.sleep(0)
        raise ValueError

    async def main():
        await worker(4)
        await asyncio.gather(*[worker(i) for i in range(4)])
        task = asyncio.ensure_future(worker(2))
        async with Manager():
            leaf()
        async for _ in numbers():
            cu(P(), note())
        [cu(P(), note()) async for _ in numbers()]
        stopped = numbers()
        await stopped.asend(None)
        await stopped.aclose()
        thrown = numbers()
        await thrown.asend(None)
        with contextlib.suppress(KeyError):
            await thrown.athrow(KeyError())
        await Awaitable()
        asyncio.get_running_loop().call_soon(leaf)
        task.add_done_callback(lambda done: cu(P(), note()))
        await task
        try:
            await fails()
        except ValueError:
            cu(P(), note())
        finally:
            await worker(1)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    by_hand = worker(1)
    by_hand.send(None)
    by_hand.close()


def c_callbacks():
    array = (ctypes.c_int * 5)(5, 3, 1, 4, 2)
    for kind in (ctypes.CFUNCTYPE, ctypes.PYFUNCTYPE):
        def compare(a, b):
            cu(P(), note())
            return a[0] - b[0]

        prototype = kind(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
        qsort = (ctypes.CDLL if kind is ctypes.CFUNCTYPE else ctypes.PyDLL)(None).qsort
        qsort.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, prototype)
        qsort(array, 5, 4, prototype(compare))
        array[:] = [5, 3, 1, 4, 2]
    sorted([2, 1, 3], key=lambda x: x + cu(P(), note()))
    functools.reduce(lambda a, b: cu(P(), note()), range(3))
    list(filter(lambda x: cu(P(), note()), range(2)))
    re.sub("[ab]", lambda m: str(cu_held(P(), note())), "a b")
    functools.cmp_to_key(lambda a, b: cu(P(), note()))(1) < functools.cmp_to_key(None)(2)
    sorted([2, 1], key=functools.cmp_to_key(lambda a, b: cu(P(), note()) + a - b))
    next(iter(lambda: cu(P(), note()) + 1, 7))


def partials():
    functools.partial(leaf)()
    functools.partial(lambda a, b: cu(P(), note()), 1)(b=2)
    functools.lru_cache(None)(leaf)()
    list(map(functools.partial(lambda a, b: cu(P(), note()), 1), range(2)))

    @functools.singledispatch
    def general(x):
        cu(P(), note())

    general(1)

    class Methods:
        method = functools.partialmethod(lambda self, x: cu(P(), note()), 1)

        @functools.cached_property
        def cached(self):
            return cu(P(), note())

    Methods().method()
    Methods().cached


def decorators():
    def plain(function):
        cu(P(), note())

        @functools.wraps(function)
        def wrapper(*args):
            cu(P(), note())
            return function(*args)

        return wrapper

    def factory(*args):
        cu(P(), note())
        return plain

    @plain
    @factory(
        cu(P(), note()),
    )
    @plain
    def decorated():
        cu(P(), note())

    decorated()


def context_managers():
    @contextlib.contextmanager
    def manager():
        cu(P(), note())
        try:
            yield
        except KeyError:
            cu(P(), note())
        finally:
            cu(P(), note())

    with manager(), manager():
        cu(P(), note())
    with manager():
        raise KeyError
    with contextlib.ExitStack() as stack:
        stack.callback(leaf)
        stack.enter_context(manager())
    with contextlib.suppress(ValueError), manager():
        raise ValueError


def exceptions():
    def fails(n):
        if n:
            fails(n - 1)
        raise ValueError(cu(P(), note()))

    try:
        fails(3)
    except ValueError:
        cu(P(), note())
        try:
            raise KeyError
        except KeyError as error:
            cu(P(), note())
            kept = error
        else:
            leaf()
        finally:
            leaf(); cu(P(), note())
    else:
        raise AssertionError
    finally:
        cu(P(), note())
    with contextlib.suppress(ZeroDivisionError):
        1 / cu(P(), note())
    with contextlib.suppress(KeyError):
        raise kept
    cu(P(), note())

    class Match(type):
        def __instancecheck__(cls, other):
            return not cu(P(), note())

    class Odd(Exception, metaclass=Match):
        pass

    isinstance(1, Odd)
    assert not cu(P(), note()), cu(P(), note())


def interpreter_callbacks():
    class Referent:
        pass

    referent = Referent()
    kept = weakref.ref(referent, lambda ref: cu(P(), note()))
    weakref.finalize(referent, leaf)
    del referent
    gc.callbacks.append(lambda phase, info: cu(P(), note()))
    gc.collect()
    gc.callbacks.pop()
    old = signal.signal(signal.SIGUSR1, lambda number, frame: cu(P(), note()))
    signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, old)
    hook, sys.excepthook = sys.excepthook, lambda *error: cu(P(), note())
    sys.excepthook(None, None, None)
    sys.excepthook = hook
    return kept


def traced():
    """sys.settrace keeps line numbers in the frame itself, which nobody must believe."""
    seen = [0]

    def tracer(frame, event, arg):
        if frame.f_code is traced_body.__code__ and event == "line":
            seen[0] += 1
            cu(P(), note()) if seen[0] % 3 == 0 else None
        return tracer

    old = sys.gettrace()
    sys.settrace(tracer)
    try:
        traced_body()
        nested()
    finally:
        sys.settrace(old)


def traced_body():
    for i in range(3):
        x = i
        cu(P(), note())
        y = x
        (y,
         cu(P(), note()),
         leaf())
    while x:
        x -= 1
        cu(P(), note())


def profiled():
    def profiler(frame, event, arg):
        if event == "call" and frame.f_code is leaf.__code__:
            cu(P(), note())

    sys.setprofile(profiler)
    leaf()
    sys.setprofile(None)


CONSTRUCTS = [
    nested, arguments, recursion_shallow, recursion_deep, recursion_through_c, released_and_held, comprehensions, generators,
    coroutines, c_callbacks, partials, decorators, context_managers, exceptions, interpreter_callbacks, traced, profiled,
]
