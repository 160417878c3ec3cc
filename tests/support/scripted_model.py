"""Workspaces whose model is the scripted provider on this machine, and what a model typically says."""

from __future__ import annotations

from fake_provider import Call, FakeProvider, Reply
from harness import Workspace, take_ok

KEY = "sk-test-0123456789abcdef"
COMPLETE = Reply("VERDICT: done")
ANSWERED = Reply("VERDICT: answered")
DIGEST = '''"""
name: Morning Digest
trigger: schedule
schedule: 0 6 * * *
description: Says every morning what waits for a decision
grants: [queue.read, ctx.log]
"""
waiting = queue_pending()
ctx_log(str(len(waiting)) + " waiting")
{"waiting": len(waiting)}
'''


def use_provider(ws: Workspace, provider: FakeProvider, protocol: str = "anthropic", **settings: str) -> None:
    """Have the workspace ask this provider, with approved settings; the key is in ``TEST_MODEL_KEY``."""
    base = provider.anthropic_url if protocol == "anthropic" else provider.openai_url
    ws.config(
        f"llm.provider={protocol}",
        "llm.model=test-model",
        f"llm.base_url={base}",
        "llm.api_key_env=TEST_MODEL_KEY",
        *(f"llm.{key}={value}" for key, value in settings.items()),
    )
    text = ws.read("config.yaml")
    ws.put("config.yaml", text.replace("llm:\n", "llm:\n  prices: {test-model: {input: 1, output: 5}}\n", 1))
    take_ok(ws, "config", "approve")


def write_file(path: str, content: str) -> Call:
    return Call("write_file", {"file_path": path, "content": content})


def script_change(provider: FakeProvider, *calls: Call, message: str = "as you asked") -> None:
    """A model that reads, writes, checks, proposes, and claims to be done."""
    provider.script(
        Reply(calls=(Call("read_file", {"file_path": "agents/ingest.py"}),)),
        Reply("I write it now.", calls=calls),
        Reply(calls=(Call("agent_check", {}),)),
        Reply(calls=(Call("propose", {"message": message}),)),
        Reply("It is proposed."),
        COMPLETE,
    )
