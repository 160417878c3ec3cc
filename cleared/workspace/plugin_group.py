"""Plug-ins: what another package adds by an entry point, where the settings in force name it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from msgspec import Struct

from cleared.base.errors import Place, WorkspaceError

NAME: Final = r"(?a)[a-z][a-z0-9_]{0,39}"
ANY_NAME: Final = r".+"

_T = TypeVar("_T")


class PluginGroup(Struct, frozen=True):
    """A group of entry points, whose plug-ins have a ``name`` that is that of their entry point."""

    noun: str
    """What one of them is called."""
    group: str
    setting: str
    """The key of the settings that names those in use."""
    names: str = NAME
    """The pattern of their names."""

    def load(self, name: str, kind: type[_T], make: Callable[[Any], Any] = lambda found: found) -> _T:
        """The plug-in of that name: what ``make`` makes of what the entry point names.

        Raises ``WorkspaceError`` where it is missing or wrong.
        """
        from importlib.metadata import entry_points  # late: reads the metadata of every installed package

        points = list(entry_points(group=self.group, name=name))
        if len(points) != 1:
            raise self.error(name, "two packages have it" if points else "it is not installed")
        try:
            found = make(points[0].load())
        except Exception as error:  # somebody else's code
            raise self.error(name, f"{type(error).__name__}: {error}") from error
        if not isinstance(found, kind) or getattr(found, "name", None) != name or not re.fullmatch(self.names, name):
            raise self.error(name, f"{points[0].value} is no {self.noun} of that name")
        return found

    def error(self, name: str, problem: str) -> WorkspaceError:
        """The refusal of that plug-in."""
        return WorkspaceError(
            f"the {self.noun} {name!r} cannot be loaded: {problem}",
            place=Place(file="config.yaml", field=self.setting),
            remedy=f"Have one package with the entry point {name!r} in the group {self.group}, or remove it: "
            f"cleared config unset {self.setting}.",
        )
