"""Allocations from classes while they are made, and from their special methods."""
import collections
import copy
import gc
import sys

import plain
from truth import P, cu, note


class Meta(type):
    @classmethod
    def __prepare__(mcs, name, bases, **more):
        cu(P(), note())
        return collections.OrderedDict()

    def __new__(mcs, name, bases, scope, **more):
        cu(P(), note())
        return super().__new__(mcs, name, bases, dict(scope))

    def __init__(cls, name, bases, scope, **more):
        super().__init__(name, bases, scope)
        cu(P(), note())

    def __call__(cls, *args):
        cu(P(), note())
        return super().__call__(*args)

    def __getattr__(cls, name):
        return cu(P(), note())


def metaclasses():
    class Descriptor:
        def __set_name__(self, owner, name):
            cu(P(), note())

        def __get__(self, instance, owner):
            return cu(P(), note())

        def __set__(self, instance, value):
            cu(P(), note())

        def __delete__(self, instance):
            cu(P(), note())

    class Base(metaclass=Meta):
        cu(P(), note())
        inside = [cu(P(), note()) for _ in range(2)]
        field = Descriptor()

        class Inner:
            cu(P(), note())

        def __init_subclass__(cls, **more):
            cu(P(), note())

        def __new__(cls):
            cu(P(), note())
            return super().__new__(cls)

        def __init__(self):
            cu(P(), note())

        def __class_getitem__(cls, key):
            return cu(P(), note())

    class Derived(Base, extra=1):
        cu(P(), note())

    instance = Derived()
    instance.field
    instance.field = 1
    del instance.field
    Derived.missing
    Derived[int]
    type("Made", (Base,), {})()


class Slots:
    """Every special method allocates."""

    def __init__(self):
        cu(P(), note())

    def __del__(self):
        cu(P(), note())

    def __getattr__(self, name):
        cu(P(), note())
        if name.startswith("__"):
            raise AttributeError(name)

    def __setattr__(self, name, value):
        cu(P(), note())

    def __delattr__(self, name):
        cu(P(), note())

    @property
    def prop(self):
        return cu(P(), note())

    @prop.setter
    def prop(self, value):
        cu(P(), note())

    @classmethod
    def of_class(cls):
        cu(P(), note())

    @staticmethod
    def static():
        cu(P(), note())

    def __iter__(self):
        cu(P(), note())
        return self

    def __next__(self):
        cu(P(), note())
        raise StopIteration

    def __missing__(self, key):
        return cu(P(), note())


def special_method(name, result):
    """One that is called from C only, for many slots."""
    def method(self, *args):
        cu(P(), note())
        return result

    method.__name__ = name
    return method


for method_name, method_result in {
        "__call__": 1, "__len__": 1, "__contains__": True, "__getitem__": 1, "__setitem__": None, "__delitem__": None,
        "__eq__": True, "__lt__": True, "__hash__": 3, "__bool__": True, "__index__": 1, "__int__": 1, "__float__": 1.0,
        "__complex__": 1j, "__str__": "s", "__repr__": "r", "__format__": "f", "__bytes__": b"b", "__add__": 1,
        "__radd__": 1, "__iadd__": 1, "__neg__": 1, "__abs__": 1, "__matmul__": 1, "__enter__": 1, "__exit__": True,
        "__reversed__": iter(()), "__length_hint__": 1, "__dir__": [], "__sizeof__": 8, "__round__": 1,
        "__reduce__": "leaf"}.items():
    setattr(Slots, method_name, special_method(method_name, method_result))


def special_methods():
    s = Slots()
    s.unknown
    s.attribute = 1
    del s.attribute
    s.prop
    Slots.prop.fset(s, 1)
    Slots.of_class(), s.static()
    list(s), s(), len(s), 1 in s, s[0], bool(s), hash(s)
    s[0] = 1
    del s[0]
    s == 1, s < 1, [s].index(2), {s: 1}[s], sorted([s, s]), [1, 2][s], int(s), float(s), complex(s)
    str(s), repr(s), "%s" % s, f"{s} {s!r} {s:x}", bytes(s), s + 1, 1 + s, -s, abs(s), s @ s, dir(s), round(s)
    reversed(s), sys.getsizeof(s), "{}".format(s), "-".join([str(s)])
    with s:
        raise KeyError
    copy.copy(s)
    s += 1
    del s
    cycle = Slots(), []
    cycle[1].append(cycle)
    del cycle
    gc.collect()


def specialised():
    """Often enough for the interpreter to run the callee without a call in C, and to keep frames of its own for that."""
    class Hot:
        def __init__(self, n):
            self.n = n
            if n > 55:
                cu(P(), note())

        @property
        def prop(self):
            return self.n > 55 and cu(P(), note())

        def __getitem__(self, n):
            return n > 55 and cu(P(), note())

        def method(self, *args, **more):
            return self.n > 55 and cu(P(), note())

    class Any:
        def __getattribute__(self, name):
            return cu(P(), note()) if name == "last" else None

    def numbers(n):
        for i in range(n):
            yield i
            if i > 57:
                cu(P(), note())

    def delegate(n):
        yield from numbers(n)

    for i in range(60):
        hot, odd = Hot(i), Any()
        hot.prop
        hot[i]
        hot.method(1, a=2)
        hot.method(*[1], **{})
        getattr(odd, "last" if i > 55 else "first")
    for _ in delegate(60):
        pass
    for i, _ in enumerate(numbers(60)):
        if i > 57:
            cu(P(), note())
    kept = [Hot(n) for n in range(50, 60)]
    sorted(kept, key=lambda hot: hot.prop)


class Missing(dict):
    def __missing__(self, key):
        return cu(P(), note())


class Attributes:
    def __getattribute__(self, name):
        return cu(P(), note())


def attribute_access():
    Missing()["key"]
    Attributes().anything
    getattr(Attributes(), "other")
    "{[key]}".format(Missing())
    "%(key)s" % Missing()
    named = collections.namedtuple("named", "a b")
    named(cu(P(), note()), 1)._replace(a=cu(P(), note()))
    collections.defaultdict(lambda: cu(P(), note()))["x"]


CONSTRUCTS = plain.CONSTRUCTS + [metaclasses, special_methods, specialised, attribute_access]
