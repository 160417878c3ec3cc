"""Calls of webhooks to the server of a fleet."""

from __future__ import annotations

import json
from typing import Any

from fleets import FleetOfOne
from program_client import KEEP, Program, sign
from web_client import Server

PATH = "/w/acme/hooks/orders"


def make_called(fleet: FleetOfOne, body: str = KEEP, sample: str = '{"order": 0}') -> str:
    """An approved agent that calls start; its secret, of the clone that the server shows."""
    path = "agents/orders.py"
    fleet.ws.put(path, f'"""\nname: orders\ntrigger: webhook\nsample: {sample}\n"""\n{body}\n')
    fleet.ws.commit(path, *fleet.ws.approve(path), message="agent: orders")
    fleet.ws.ok("sync")
    fleet.desk.ok("sync", "origin")
    made = fleet.desk.json("webhook", "add", "orders")
    assert made["path"] == PATH
    return str(made["secret"])


def send(server: Server, secret: str, call_id: str, value: object, query: str = "") -> tuple[int, Any]:
    """Status and answer of a signed call."""
    body = json.dumps(value).encode()
    headers = sign(secret, body, call_id)
    page = Program(server).send("POST", f"{PATH}{query}", body, **headers)
    return page.status, json.loads(page.body)
