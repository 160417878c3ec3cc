"""``cleared llm check``, ``usage`` and ``key``: one clear answer whatever is wrong."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import types
import warnings
from typing import Any

import pytest
from fake_provider import Call, FakeProvider, Reply, bad_key, no_such_model
from harness import Workspace
from modelled import KEY, door_of, open_host, use_model

from cleared.llm.single_call import ask_once


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of whoever runs the tests, neither in the environment nor in a keyring."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "TEST_MODEL_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "keyring", None)


class Keyring(types.ModuleType):
    """A keyring that answers, or raises ``problem``."""

    def __init__(self) -> None:
        super().__init__("keyring")
        self.kept: dict[tuple[str, str], str] = {}
        self.problem: Exception | None = None

    def get_password(self, service: str, name: str) -> str | None:
        if self.problem is not None:
            raise self.problem
        return self.kept.get((service, name))

    def set_password(self, service: str, name: str, text: str) -> None:
        if self.problem is not None:
            raise self.problem
        self.kept[service, name] = text

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Keyring:
    keyring = Keyring()
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    return keyring


def refused(ws: Workspace, *argv: str, says: str) -> str:
    done = ws("llm", *argv)
    assert done.code == 1 and says in " ".join(done.err.split()) and "Traceback" not in done.err, done
    return done.out


def test_check_says_what_is_missing_one_after_the_other(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(ws, "check", says="no language model is set up. Name one: cleared config set llm.provider")
    ws.ok("config", "set", "llm.provider", "openai")
    refused(ws, "check", says="llm.model")
    ws.ok("config", "set", "llm.model", "gpt-4.11")
    out = refused(ws, "check", says="there is no key for openai. Put it into the environment (export OPENAI_API_KEY=…)")
    assert "missing" in out
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    refused(ws, "check", says="what gpt-4.11 costs is not known")
    ws.ok("config", "set", "llm.model", "gpt-4.1")
    done = ws.ok("llm", "check")
    assert "the variable OPENAI_API_KEY" in done.out and "$2.00 in, $0.50 in from its cache, $8.00 out" in done.out
    assert "$0.028 for 10,000 tokens in and 1,000 out" in done.out and KEY not in done.out
    found = ws.json("llm", "check")
    assert found["ready"] and found["price"]["output"] == "8.000" and found["url"] == "https://api.openai.com/v1"
    assert found["answers"] is None and not (ws.root / ".cleared/llm.db").exists()


@pytest.mark.slow
def test_check_asks_where_it_is_told_to(ws: Workspace, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    use_model(ws, provider)
    monkeypatch.setenv("TEST_MODEL_KEY", KEY)
    ws.ok("llm", "check")
    assert provider.requests == []
    provider.script(Reply("OK", input_tokens=20, output_tokens=2), bad_key(), no_such_model(), Reply(raw=b"<html>"))
    assert "yes, for $0.0001" in ws.ok("llm", "check", "--call").out
    assert provider.requests[0].body["max_tokens"] == 64
    out = refused(ws, "check", "--call", says="refuses the key: invalid x-api-key")
    assert "no" in out.split()
    refused(ws, "check", "--call", says="has no model 'claude-sonnet-4-5'")
    refused(ws, "check", "--call", says="makes no sense")
    assert ws("llm", "check", "--call", "--json").json["ready"] is False


def test_a_model_that_answers_with_calls_is_no_traceback(
    ws: Workspace, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 29.11: it was offered no tool, and calls another one each time."""
    use_model(ws, provider, "openai")
    monkeypatch.setenv("TEST_MODEL_KEY", KEY)
    provider.script(*(Reply(calls=(Call(f"look{number}", {}),)) for number in range(4)))
    refused(ws, "check", "--call", says="gave no answer, however often it was asked: it calls tools, and has none")
    provider.script(*(Reply("OK", calls=(Call("look", {}),)) for _ in range(4)))
    refused(ws, "check", "--call", says="")


def test_a_provider_that_counts_nonsense(
    ws: Workspace, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither believed nor shown; the call is counted by what was sent and answered."""
    use_model(ws, provider, "openai")
    provider.script(Reply("OK", input_tokens=-5, output_tokens=10**30))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = ws.ok("llm", "check", "--call")
    assert "Warning" not in done.err
    [row] = ws.json("llm", "usage")["rows"]
    assert 0 < row["input_tokens"] < 100 and 0 < row["output_tokens"] < 10 and row["failed"] == 0


def test_a_key_that_cannot_be_one(ws: Workspace, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    use_model(ws, provider)
    for text in ("a b c d e f", "abc", "sésame-öffne-dich", "line\none-and-two"):
        monkeypatch.setenv("TEST_MODEL_KEY", text)
        refused(ws, "check", "--call", says="the variable TEST_MODEL_KEY cannot be a key")
    assert provider.requests == []


def test_missing_packages_are_one_sentence(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    ws.ok("config", "set", "llm.provider", "anthropic")
    ws.ok("config", "set", "llm.model", "claude-sonnet-4-5")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "cleared.llm.model_door.find_spec", lambda name: None if name == "anthropic" else find_spec(name)
    )
    refused(ws, "check", says="asking a language model needs more packages. In the checkout: pip install '.[llm]'.")


def test_a_key_in_the_keyring(
    ws: Workspace, provider: FakeProvider, keyring: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It belongs to one server; the environment's comes first."""
    use_model(ws, provider)
    monkeypatch.setattr("sys.stdin", _Input(f"{KEY}\n"))
    assert KEY not in ws.ok("llm", "key").err
    assert keyring.kept == {("cleared", f"127.0.0.1:{provider.port}"): KEY}
    assert ws.json("llm", "check")["key_source"] == "the system's keyring"
    provider.script("OK")
    ws.ok("llm", "check", "--call")
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
    monkeypatch.setenv("TEST_MODEL_KEY", "another-key-0123")
    assert ws.json("llm", "check")["key_source"] == "the variable TEST_MODEL_KEY"
    assert "is removed" in ws.ok("llm", "key", "--remove").err and keyring.kept == {}
    assert "none in the keyring" in ws.ok("llm", "key", "--remove").err
    keyring.problem = RuntimeError("locked")
    monkeypatch.setattr("sys.stdin", _Input(f"{KEY}\n"))
    done = ws("llm", "key")
    assert done.code == 2 and "did not answer (RuntimeError)" in done.err


def test_a_key_without_the_package_for_keyrings(
    ws: Workspace, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_model(ws, provider)
    monkeypatch.setattr("sys.stdin", _Input(f"{KEY}\n"))
    done = ws("llm", "key")
    assert done.code == 2 and "pip install keyring" in done.err


def test_usage(ws: Workspace, provider: FakeProvider) -> None:
    """H12: every call, by day, model and purpose; and what is left."""
    assert "No model was asked." in ws.ok("llm", "usage").out
    use_model(ws, provider)
    provider.script(*[Reply("a", input_tokens=1000, output_tokens=1000, cached_tokens=500)] * 3, bad_key())
    for day, purpose in (("2025-01-02", "old"), ("2025-02-09", "chat"), ("2025-02-10", "chat")):
        ask_once(door_of(open_host(ws.root, f"{day}T06:00:00Z"), purpose=purpose, session="S1"), "s", "p")
    ws("llm", "check", "--call")
    done = ws.ok("llm", "usage")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "2025-02-10 claude-sonnet-4-5 chat 1 0 1,000 500 1,000 $0.0166" in lines and "old" not in done.out
    assert "Together: $0.0333" in lines and "Left today: $4.98 of $5.00" in lines
    found = ws.json("llm", "usage", "--days", "60")
    assert [(row["day"], row["purpose"]) for row in found["rows"]][-1] == ("2025-01-02", "old")
    assert found["left_today"] == "4.98335"
    assert [(row["purpose"], row["failed"]) for row in found["rows"]] == [
        ("chat", 0),
        ("check", 1),
        ("chat", 0),
        ("old", 0),
    ]


@pytest.mark.slow
def test_commands_that_ask_no_model_import_nothing_of_it(ws: Workspace) -> None:
    """``cleared --help`` and ``agent run`` stay as fast as they were without the packages for models. Typer itself
    imports pydantic where it is installed."""
    ws.agent("probe", "1 + 1")
    packages = "('pydantic_ai', 'anthropic', 'openai', 'genai_prices', 'keyring', 'httpx2')"
    code = (
        "import sys\nfrom cleared.cli.command_runner import run\nrun(sys.argv[1:])\n"
        f"sys.stderr.write('loaded: ' + str([name for name in {packages} if name in sys.modules]))"
    )
    for argv in (["--help"], ["agent", "run", "probe", "-C", str(ws.root)], ["llm", "usage", "-C", str(ws.root)]):
        done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, env=os.environ, check=False)
        assert b"loaded: []" in done.stderr, (argv, done.stderr)


class _Input:
    """What is piped in."""

    def __init__(self, text: str) -> None:
        self._text = text

    def isatty(self) -> bool:
        return False

    def readline(self, most: int = -1) -> str:
        return self._text

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)
