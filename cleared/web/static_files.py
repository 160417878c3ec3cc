"""The files of the page, each under an address that changes with its content: a browser keeps it, and asks no more."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from cleared.web.request_guard import Scope

_FOLDER: Final = Path(__file__).parent / "static"
WORKER: Final = "worker.js"
"""The script that answers where the server cannot be reached; for all addresses, though it lies in ``/static``."""
_FOR_GOOD: Final = "public, max-age=31536000, immutable"


def find_static_address(name: str) -> str:
    """``/static/HASH/style.css``. Raises ``KeyError`` where there is no such file."""
    return f"/static/{_read_hashes()[name]}/{name}"


@cache
def _read_hashes() -> Mapping[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in _FOLDER.iterdir()}


class PageFiles(StaticFiles):
    """Answers for the addresses of ``find_static_address``; for names alone, too, which nobody is to keep."""

    def __init__(self) -> None:
        super().__init__(directory=_FOLDER)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file of a path below ``/static``."""
        found, _, name = path.partition("/")
        if _read_hashes().get(name) != found:
            return await super().get_response(path, scope)
        response = await super().get_response(name, scope)
        response.headers["Cache-Control"] = _FOR_GOOD
        if name == WORKER:
            response.headers["Service-Worker-Allowed"] = "/"
        return response
