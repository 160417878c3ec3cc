"""How a section of the configuration is declared: a frozen dataclass whose docstrings become the reference page.

Each setting says where it stands whether it takes effect only when a person has approved it: ``protected`` (or
``reserved``), ``harmless``, or ``secret``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform, overload

_T = TypeVar("_T")

CLASS = "class"
"""Where the metadata of a field says which of the classes below its setting is of."""


@overload
def protected() -> Any: ...
@overload
def protected(*, default: _T) -> _T: ...
@overload
def protected(*, default_factory: Callable[[], _T]) -> _T: ...
def protected(**default: Any) -> Any:
    """A setting that takes effect only when a person has approved it. Without a default it must be given."""
    return field(**default, metadata={CLASS: "protected"})


def program(*, default: _T) -> _T:
    """A protected setting by which this machine runs a program, or sends something out."""
    marked: Any = field(default=default, metadata={CLASS: "protected", "program": True})
    return marked  # type: ignore[no-any-return]


def harmless(*, default: _T) -> _T:
    """A setting that takes effect at once, whoever wrote it: at worst it is a nuisance to the person who reads."""
    marked: Any = field(default=default, metadata={CLASS: "harmless"})
    return marked  # type: ignore[no-any-return]


def secret(*, default: _T) -> _T:
    """A setting that takes effect at once, as it cannot be approved: what is approved is kept in the repository."""
    marked: Any = field(default=default, metadata={CLASS: "secret"})
    return marked  # type: ignore[no-any-return]


def reserved(*, default: _T) -> _T:
    """A setting that is accepted and checked, and that no part of the program reads yet; the reference says so.

    A script may still read it, so it is protected.
    """
    marked: Any = field(default=default, metadata={CLASS: "protected", "reserved": True})
    return marked  # type: ignore[no-any-return]


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(field, protected, program, harmless, secret, reserved)
)
def config_section(cls: type[_T]) -> type[_T]:
    """A frozen dataclass with slots, as everything here is. Made by keyword.

    What ``Section`` has once is not generated and compiled for each class: every command waits for that.
    """
    cls.__doc__ = cls.__doc__ or cls.__name__
    return dataclass(slots=True, init=False, repr=False, eq=False)(cls)


class Section:
    """What dataclasses have beside their fields."""

    __slots__ = ()

    def __init__(self, **values: Any) -> None:
        for name, declared in self.__dataclass_fields__.items():  # type: ignore[attr-defined]
            if name in values:
                value = values.pop(name)
            elif declared.default is not MISSING:
                value = declared.default
            elif declared.default_factory is not MISSING:
                value = declared.default_factory()
            else:
                raise TypeError(f"{type(self).__qualname__} needs {name!r}")
            object.__setattr__(self, name, value)
        if values:
            raise TypeError(f"{type(self).__qualname__} has no {next(iter(values))!r}")

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, (type(self), {f.name: getattr(self, f.name) for f in fields(self)})  # type: ignore[arg-type]

    def _field_values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__qualname__}({shown})"

    def __eq__(self, other: object) -> bool:
        return self._field_values() == other._field_values() if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._field_values())


def _remake(kind: type[_T], values: dict[str, Any]) -> _T:
    """For copies and pickles."""
    return kind(**values)
