"""A program that calls the server: with a token, or with a signed webhook."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

from harness import Workspace
from web_client import Page, Server

KEEP = 'ctx_emit("order.taken", ctx_event()["payload"]["order"])\nctx_event()["payload"]'
"""A script that says what the body was."""


def webhook_agent(ws: Workspace) -> str:
    """An approved agent, ``orders``, that is started by webhooks; its secret."""
    path = "agents/orders.py"
    ws.put(path, f'"""\nname: orders\ntrigger: webhook\nsample: {{"order": 0}}\n"""\n{KEEP}\n')
    ws.commit(path, *ws.approve(path), message="agent: orders")
    return str(ws.json("webhook", "add", "orders")["secret"])


def sign(secret: str, body: bytes, call_id: str, at: float | None = None) -> dict[str, str | None]:
    """The headers of a signed call, made as https://www.standardwebhooks.com says, without the library."""
    stamp = str(int(at if at is not None else time.time()))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{call_id}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": call_id,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


class Program:
    """Sends no cookie and no Origin."""

    def __init__(self, server: Server, token: str = "", secret: str = "") -> None:
        self.server, self.token, self.secret = server, token, secret

    def send(self, method: str, path: str, body: bytes = b"", **headers: str | None) -> Page:
        own: dict[str, str | None] = {"Cookie": None, "Origin": None, "Content-Type": "application/json"}
        if self.token:
            own["Authorization"] = f"Bearer {self.token}"
        return self.server.send(method, path, headers=own | headers, body=body)

    def call(self, method: str, **params: Any) -> tuple[int, Any]:
        """Status and answer of a method of the API."""
        page = self.send("POST", f"/api/{method}", json.dumps(params).encode())
        return page.status, json.loads(page.body)

    def hook(
        self, call_id: str, value: Any = None, agent: str = "orders", query: str = "", at: float | None = None
    ) -> tuple[int, Any]:
        """Status and answer of a signed call."""
        body = json.dumps(value if value is not None else {"order": 7}).encode()
        page = self.send("POST", f"/hooks/{agent}{query}", body, **sign(self.secret, body, call_id, at))
        return page.status, json.loads(page.body)
