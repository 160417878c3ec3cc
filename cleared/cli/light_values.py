"""The values of a command line without pydantic.

Newer versions of typer turn every option and argument into its value by pydantic, even one that was not given;
importing that takes longer than all the rest of a command's start. A text needs no turning, and a path one call.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_NAME: Final = "build_runtime_param"


class _LightParameter:
    """What turns one parameter's text into its value; what it does not know itself it leaves to typer."""

    def __init__(self, descriptor: Any, build: Callable[[Any], Any]) -> None:
        self._descriptor = descriptor
        self._build = build
        self._full: Any = None

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if self._descriptor.parameter_info.parser is None:
            if value is None:
                return () if param.multiple or param.nargs == -1 else None
            annotation = self._descriptor.annotation
            if isinstance(annotation, type) and isinstance(value, annotation):
                return value
            if annotation is Path and isinstance(value, str):
                return Path(value)
        if self._full is None:
            self._full = self._build(self._descriptor)
        return self._full.coerce(value, param=param, ctx=ctx)


def skip_pydantic() -> None:
    """Have typer do so. A version of typer that works otherwise is left as it is."""
    from typer import core

    build = getattr(core, _NAME, None)
    if build is not None and build.__module__ != __name__:

        def light(descriptor: Any) -> _LightParameter:
            return _LightParameter(descriptor, build)

        setattr(core, _NAME, light)
