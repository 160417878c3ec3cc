"""Forms that come in: bounded, and as text."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from starlette.datastructures import UploadFile
from starlette.requests import Request

from cleared.base.errors import UsageError

MAX_FIELDS = 30_000
"""A decision about a group sends two fields a card."""


class Form(Struct, frozen=True):
    """The fields of a form."""

    values: dict[str, list[str]]
    files: list[UploadFile]

    def get(self, name: str, default: str = "") -> str:
        """A field's first value."""
        return next(iter(self.values.get(name, ())), default)

    def get_all(self, name: str) -> list[str]:
        """All values of a field."""
        return self.values.get(name, [])


async def read_form(request: Request) -> Form:
    """The request's form. Raises ``UsageError`` where it is none.

    A sender may name any character set, also one that makes what no text can hold (lone surrogates), or nothing.
    """
    from starlette.exceptions import HTTPException

    try:
        data: Any = await request.form(max_files=100, max_fields=MAX_FIELDS)
    except HTTPException as error:
        raise _unreadable(error.detail) from None
    except UnicodeError:
        raise _unreadable("it is in no character set that is known here") from None
    values: dict[str, list[str]] = {}
    files: list[UploadFile] = []
    for name, value in data.multi_items():
        text = value if isinstance(value, str) else value.filename or ""
        try:
            (name + text).encode()
        except UnicodeEncodeError:
            raise _unreadable("it holds what is no text") from None
        if isinstance(value, str):
            values.setdefault(name, []).append(value)
        else:
            files.append(value)
    return Form(values, files)


def _unreadable(why: str) -> UsageError:
    return UsageError(f"the form cannot be read: {why}", remedy="Send it from the page.")
