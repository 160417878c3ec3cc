"""A body that comes too slowly is refused, however much of it has come; one of many megabytes has its time."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from cleared.web import request_guard
from cleared.web.request_guard import BODY_SECONDS, RequestGuard


def send_body(monkeypatch: pytest.MonkeyPatch, *, pieces: int, size: int, seconds: float) -> int:
    """The status of a request whose body comes in so many pieces of that size, each after so many seconds."""
    now, sent, statuses = [0.0], [0], []
    monkeypatch.setattr(request_guard, "monotonic", lambda: now[0])

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.005)  # in which a time that is over is noticed
        now[0] += seconds
        sent[0] += 1
        return {"type": "http.request", "body": b"x" * size, "more_body": sent[0] < pieces}

    async def read_all(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["more_body"]:
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: dict[str, Any]) -> None:
        statuses.append(message.get("status"))

    scope = {"type": "http", "method": "POST", "path": "/api", "headers": [(b"host", b"localhost:1")]}
    asyncio.run(RequestGuard(read_all, ["localhost:1"], re.compile("/api"))(scope, receive, send))
    return int(statuses[0] or 0)


@pytest.mark.parametrize(
    ("pieces", "size", "seconds", "status"),
    [
        (10, 1, BODY_SECONDS / 11, 200),
        (10, 1, BODY_SECONDS / 5, 408),
        (10, 1 << 18, BODY_SECONDS / 5, 200),
        (100, 1 << 12, BODY_SECONDS / 5, 408),
    ],
    ids=["small, in time", "small, too late", "large, in the time of its size", "large, too slow"],
)
def test_a_body_has_its_time(
    monkeypatch: pytest.MonkeyPatch, pieces: int, size: int, seconds: float, status: int
) -> None:
    assert send_body(monkeypatch, pieces=pieces, size=size, seconds=seconds) == status
