"""Spans of runs and their calls, sent to a real collector on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import Workspace, refused
from running import Up, eventually
from span_collector import collecting

SECRET = "sk-very-secret-1234"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    with collecting() as (variables, received):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield received


def test_runs_and_their_calls_are_spans_without_what_is_in_the_books(
    ws: Workspace, collector: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opentelemetry.sdk")
    monkeypatch.delenv("CLEARED_CLOCK")
    up = Up(ws)
    ws.config(f"notifications.smtp_password={SECRET}")
    body = f'ctx_log("a remark {SECRET}")\naccounts_list()\n1 / 0'
    up.agent("fails", "trigger: event\nevent: ping\nretries: 0\n", body)
    up.start()
    ws.ok("event", "emit", "ping")
    eventually(lambda: up.log("run.failed"))
    assert up.stop()[0] == 0
    whole = b"".join(collector)
    for text in (b"run fails", b"ctx_log", b"accounts_list", b"ZeroDivisionError", b"agents/fails.py", b"cleared.run"):
        assert text in whole, text
    assert SECRET.encode() not in whole and b"a remark" not in whole


def test_a_collector_without_the_packages_is_refused_with_the_remedy(
    ws: Workspace, collector: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    refused(ws("up"), 2, "pip install '.[otel]'", "OTEL_EXPORTER_OTLP_ENDPOINT")


def test_without_a_collector_in_the_environment_there_are_no_spans() -> None:
    from cleared.service.spans import SpanExporter

    for environment in ({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, {"OTEL_SERVICE_NAME": "x"}):
        assert SpanExporter.from_environment(environment) is None
    assert (
        SpanExporter.from_environment(
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}
        )
        is None
    )
