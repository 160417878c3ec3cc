"""``@dataclass`` of the standard library, made in a quarter of the time: every command waits for it.

The standard decorator writes and compiles up to seven methods for each class, and some hundred classes are a fifth of a
short command. Here ``__init__`` alone is compiled; text, comparison and hash are functions that all classes share.
``frozen`` is held by the type checker, and gives a hash.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    from operator import attrgetter

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, order=False, **options):
        """As ``dataclasses.dataclass``. What only few classes want (``order``) is left to that."""

        def make(cls):
            if order:
                return dataclasses.dataclass(cls, frozen=frozen, eq=eq, repr=repr, order=order, **options)
            cls.__doc__ = cls.__doc__ or cls.__name__  # else the signature of each class is put together
            own = frozenset(cls.__dict__)
            made = dataclasses.dataclass(cls, repr=False, eq=False, **options)
            if repr and "__repr__" not in own:
                made.__repr__ = _show_fields
            if eq and "__eq__" not in own:
                _compare_by_fields(made, is_hashable=frozen, has_own_hash="__hash__" in own)
            return made

        return make if cls is None else make(cls)

    def _compare_by_fields(cls, *, is_hashable, has_own_hash):
        names = [f.name for f in dataclasses.fields(cls) if f.compare]
        values_of = attrgetter(*names) if names else lambda _: ()

        def __eq__(self, other):
            return values_of(self) == values_of(other) if other.__class__ is self.__class__ else NotImplemented

        cls.__eq__ = __eq__
        if not has_own_hash:
            cls.__hash__ = (lambda self: hash(values_of(self))) if is_hashable else None


def _show_fields(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"
