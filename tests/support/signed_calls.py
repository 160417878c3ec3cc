"""Calls of webhooks to the server of a fleet."""

from __future__ import annotations

import json
from typing import Any

from fleets import FleetOfOne
from program_client import KEEP, Program, sign
from web_client import Server


def make_called(fleet: FleetOfOne, body: str = KEEP, sample: str = '{"order": 0}') -> str:
    """An approved agent that calls start; its secret, of the clone that the server shows."""
    path = "agents/orders.py"
    fleet.ws.put(path, f'"""\nname: orders\ntrigger: webhook\nsample: {sample}\n"""\n{body}\n')
    fleet.ws.commit(path, *fleet.ws.approve(path), message="agent: orders")
    fleet.ws.ok("sync")
    fleet.desk.ok("sync", "origin")
    return str(fleet.desk.json("webhook", "add", "orders")["secret"])


def send(server: Server, secret: str, call_id: str, value: object, query: str = "") -> tuple[int, Any]:
    """Status and answer of a signed call."""
    body = json.dumps(value).encode()
    headers = sign(secret, body, call_id)
    page = Program(server).send("POST", f"/w/acme/hooks/orders{query}", body, **headers)
    return page.status, json.loads(page.body)
