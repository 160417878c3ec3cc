"""Requests of an owner, each with what a capable model says to it, reply by reply, in ``bench/transcripts``.

A transcript is replayed against the real loop, tools and gate, over HTTP. What is counted is what is sent: the JSON of
each request, and the words and arguments of each reply; a token for four bytes of UTF-8, as the program estimates. By
this count the first request of the version before (42,843 bytes) has 10,711 tokens; its provider counted 10,050.

``python tests/support/recorded_requests.py`` prints what each takes, as JSON.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fake_provider import Call, FakeProvider, Reply
from harness import Done, Workspace, chase, environment, here
from scripted_model import KEY, use_provider

from cleared.meta.tools.output_bounds import estimate_tokens

FOLDER = Path(__file__).resolve().parents[2] / "bench/transcripts"
CLOCKS = {"low_march": "2025-05-02T06:00:00Z"}
"""When it is asked, where that is not the harness's own day."""
_BANK = "Buchungstag;Text;Betrag;Saldo\n"


@dataclass(frozen=True)
class Replayed:
    """How a replay ended: the command, its tokens sent and received, and how many requests it took."""

    done: Done
    tokens: int
    requests: int
    failed: tuple[str, ...]
    """What tools said of calls that did not work."""

    def to_json_object(self) -> dict[str, int]:
        return {"tokens": self.tokens, "requests": self.requests, "failed": len(self.failed)}


def read_transcript(name: str) -> tuple[str, list[Reply]]:
    """The request and the model's replies. A text may stand as a list of its lines."""
    data = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return data["request"], [_read_reply(each) for each in data["replies"]]


def _read_reply(data: Mapping[str, Any]) -> Reply:
    calls = tuple(Call(each["name"], _join_lines(each["arguments"])) for each in data.get("calls", ()))
    return Reply(data.get("text", ""), calls)


def _join_lines(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {key: "\n".join(value) if isinstance(value, list) else value for key, value in arguments.items()}


def replay(ws: Workspace, name: str) -> Replayed:
    """Ask what was asked, in a workspace that ``prepare`` has made ready. ``TEST_MODEL_KEY`` is to be set."""
    request, replies = read_transcript(name)
    with FakeProvider() as provider:
        use_provider(ws, provider)
        provider.script(*replies)
        done = ws("meta", request)
        assert provider.left == 0, (name, done)
        sent = sum(estimate_tokens(each.text) for each in provider.requests)
        received = sum(
            estimate_tokens(each.text + "".join(json.dumps(call.arguments) for call in each.calls)) for each in replies
        )
        failed = tuple(dict.fromkeys(_list_failures(provider.requests[-2:])))
        return Replayed(done, sent + received, len(provider.requests), failed)


def _list_failures(requests: list[Any]) -> list[str]:
    blocks = [
        block
        for request in requests
        for message in request.body["messages"]
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    texts = [json.dumps(block["content"]) for block in blocks]
    return [text for text in texts if "[failed]" in text or "[invalid call]" in text]


def prepare(ws: Workspace, name: str) -> None:
    """What lies in the workspace when the request comes."""
    _PREPARE.get(name, lambda _: None)(ws)


def _prepare_coffee(ws: Workspace) -> None:
    rows = [("01/06/2025", "CORNER COFFEE", "-4.50"), ("01/07/2025", "CORNER COFFEE", "-24.00")]
    ws.drop("january.csv", chase(*rows, ("01/08/2025", "RENT", "-800.00")))
    ws.run("ingest")


def _prepare_march(ws: Workspace) -> None:
    rows = [("02/03/2025", "MILLER INVOICE", "2400.00"), ("04/02/2025", "MILLER INVOICE", "2400.00")]
    rows += [(f"0{month}/15/2025", "AMES INVOICE", "300.00") for month in (2, 3, 4)]
    rows += [(f"0{month}/05/2025", "GITHUB *PRO", "-40.00") for month in (2, 3, 4)]
    ws.drop("spring.csv", chase(*sorted(rows)))
    ws.run("ingest")


def _prepare_customers(ws: Workspace) -> None:
    add = 'journal_add_double("{}", "{}", {}, {}, "{}", counterparty="{}")\n'
    ws.script(
        add.format("2025-01-03", "Invoice", 1200, 4010, "100", "Miller")
        + add.format("2025-01-10", "Invoice", 1200, 4010, "60", "Miller")
        + add.format("2025-01-05", "Invoice", 1200, 4010, "75", "Ames")
        + add.format("2025-01-08", "Invoice", 1200, 4010, "20", "Bauer")
        + add.format("2025-01-20", "Paid", 1010, 1200, "130", "Miller")
        + add.format("2025-01-21", "Paid", 1010, 1200, "75", "Ames")
    )


def _prepare_bank(ws: Workspace) -> None:
    ws.drop("january.csv")
    ws.run("ingest")
    rows = (
        "03.02.2025;ZINSEN;4,50;995,50",
        "04.02.2025;KUNDE MUELLER;1.200,00;2.195,50",
        "05.02.2025;MIETE;-80,00;2.115,50",
    )
    ws.put("import/volksbank.csv", _BANK + "\n".join(rows) + "\n")


def _prepare_prices(ws: Workspace) -> None:
    ws.put("prices/acme.csv", "item,price\nbolt-8,4.20\nnut-8,1.10\n")
    ws.put("prices/bauer.csv", "item,price\npaint,12.00\n")


_PREPARE: Mapping[str, Callable[[Workspace], None]] = {
    "coffee": _prepare_coffee,
    "morning_email": lambda ws: (ws.drop("january.csv"), ws.run("ingest"))[0],
    "low_march": _prepare_march,
    "unpaid_customers": _prepare_customers,
    "new_bank": _prepare_bank,
    "price_lists": _prepare_prices,
}


def measure_all() -> dict[str, dict[str, int]]:
    """Each replayed in a workspace of its own, in this process, whose environment is theirs from then on."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="cleared-bench-") as folder:
        for name in sorted(path.stem for path in FOLDER.glob("*.json")):
            home = Path(folder) / name
            home.mkdir()
            os.environ |= environment(home) | {"CLEARED_HOME": str(home / "cleared"), "TEST_MODEL_KEY": KEY}
            os.environ |= {"CLEARED_CLOCK": CLOCKS.get(name, os.environ["CLEARED_CLOCK"])}
            made = here("init", str(home / "books"), "--name", "Acme")
            assert made.code == 0, made
            ws = Workspace(home / "books")
            prepare(ws, name)
            found[name] = replay(ws, name).to_json_object()
    return found


if __name__ == "__main__":
    print(json.dumps(measure_all()))
