"""Plain data that cannot change: an ordered dict without setters, and records that hold no other containers."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from operator import is_
from typing import ClassVar, NoReturn, TypeVar, cast, overload

from msgspec import Struct
from msgspec.structs import astuple, force_setattr
from pyrsistent import PMap, pmap

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class FrozenDict(Mapping[K, V]):
    """A mapping that keeps its order, pickles and never changes.

    Written here because a ``PMap`` forgets the order and a ``MappingProxyType`` cannot be sent to a worker.

    >>> frozen = FrozenDict({"b": 1, "a": 2})
    >>> list(frozen), frozen == {"a": 2, "b": 1}
    (['b', 'a'], True)
    >>> frozen["c"] = 3
    Traceback (most recent call last):
    TypeError: 'FrozenDict' object does not support item assignment
    """

    __slots__ = ("_held",)
    _held: dict[K, V]
    _empty: ClassVar[tuple[FrozenDict[object, object], ...]] = ()

    def __new__(cls, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> FrozenDict[K, V]:
        held = dict(items)
        if not held and cls._empty:
            return cast("FrozenDict[K, V]", cls._empty[0])  # one for all, as there is one empty tuple
        made = object.__new__(cls)
        object.__setattr__(made, "_held", held)
        return made

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a FrozenDict is read-only")

    def __getitem__(self, key: K) -> V:
        return self._held[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    # Mapping has these too, five times slower.

    def __contains__(self, key: object) -> bool:
        return key in self._held

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | D) -> V | D: ...
    def get(self, key: K, /, default: V | D | None = None) -> V | D | None:
        return self._held.get(key, default)

    def keys(self) -> KeysView[K]:
        return self._held.keys()

    def values(self) -> ValuesView[V]:
        return self._held.values()

    def items(self) -> ItemsView[K, V]:
        return self._held.items()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenDict):
            return self._held == other._held
        return self._held == dict(other) if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._held.items()))

    def __reduce__(self) -> tuple[type[FrozenDict[K, V]], tuple[dict[K, V]]]:
        return FrozenDict, (self._held,)

    def __repr__(self) -> str:
        return repr(self._held)  # so that messages show what the user wrote


FrozenDict._empty = (FrozenDict(),)
_MUTABLE = frozenset({list, dict, set})
_SCALARS = frozenset({str, int, float, bool, bytes, type(None)})
_CONTAINERS = (tuple, list, dict, set, PMap)  # nothing abstract, such as Mapping: asking costs five times as much


def freeze_value(value: object) -> object:
    """Freeze plain data: tuples for lists and ``FrozenDict`` for dicts, all the way down; what is frozen stays itself.

    >>> freeze_value({"a": [1, {"b": 2}]})
    {'a': (1, {'b': 2})}
    """
    if type(value) in _SCALARS or isinstance(value, Struct):
        return value
    if type(value) is dict or type(value) is FrozenDict:  # first, because most are
        return freeze_dict(value)
    if isinstance(value, PMap):
        items = {key: freeze_value(item) for key, item in value.items()}
        return value if all(map(is_, items.values(), value.values())) else pmap(items)
    if isinstance(value, Mapping):
        return freeze_dict(value)
    if isinstance(value, list | tuple):
        parts = value if hasattr(value, "_fields") else tuple(map(freeze_value, value))
        return value if isinstance(value, tuple) and all(map(is_, parts, value)) else parts
    if isinstance(value, frozenset):
        return value
    if isinstance(value, set):
        return frozenset(map(freeze_value, value))
    return value


def freeze_dict(given: Mapping[K, object]) -> FrozenDict[K, object]:
    """``freeze_value`` of a mapping.

    >>> freeze_dict({"a": [1]})
    {'a': (1,)}
    """
    items = {key: freeze_value(item) for key, item in given.items()}
    if isinstance(given, FrozenDict) and all(map(is_, items.values(), given.values())):
        return given
    return FrozenDict(items)


def thaw_value(value: object) -> object:
    """Undo ``freeze_value``: plain dicts and lists, in their order.

    >>> thaw_value(freeze_value({"a": [1, {"b": 2}]}))
    {'a': [1, {'b': 2}]}
    """
    if isinstance(value, Mapping):
        return thaw_dict(value)
    if isinstance(value, list | tuple):
        return [thaw_value(item) for item in value]
    return value


def thaw_dict(given: Mapping[K, object]) -> dict[K, object]:
    """``thaw_value`` of a mapping.

    >>> thaw_dict(freeze_dict({"a": [1]}))
    {'a': [1]}
    """
    return {key: thaw_value(item) for key, item in given.items()}


class ShallowRecord(Struct, frozen=True):
    """A record whose lists, sets and dicts are frozen, and whose tuples are taken as they are.

    For records that are replaced again and again before they are done, such as estimates.
    """

    def __post_init__(self) -> None:
        values = astuple(self)
        if not _MUTABLE.isdisjoint(map(type, values)):
            for name, value in zip(self.__struct_fields__, values, strict=True):
                force_setattr(self, name, freeze_value(value) if type(value) in _MUTABLE else value)


class FrozenRecord(Struct, frozen=True):
    """A record of plain data whose lists, sets and dicts are frozen whenever it is made.

    >>> class Described(FrozenRecord, frozen=True):
    ...     labels: Mapping[str, object]
    >>> Described({"colours": ["red"]}).labels
    {'colours': ('red',)}
    """

    def __post_init__(self) -> None:
        for name, value in zip(self.__struct_fields__, astuple(self), strict=True):
            if isinstance(value, _CONTAINERS) and (frozen := freeze_value(value)) is not value:
                force_setattr(self, name, frozen)


class Displayed:
    """A record that a notebook shows as HTML, written by what stands above all records."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from evalcore.core.notebook.record_forms import write_html

        return write_html(self)
