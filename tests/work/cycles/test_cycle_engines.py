"""How each engine is started and read: exact argument vectors, and what counts as a limit (F1–F4, F15–F18, F36)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from fake_engine import FakeEngine, begin_hanging, good, start, wait_until
from harness import Workspace, refused
from patience import PATIENCE

from cleared.base.errors import PolicyError, UsageError
from cleared.processes.confinement import landlock_abi
from cleared.work.cycles.cycle_settings import OVERRIDES, read_cycle_settings, require_opt_in
from cleared.work.cycles.engine_process import EngineRun, find_limit
from cleared.work.cycles.engines import load_engine
from cleared.work.cycles.engines.engine import LaunchOptions
from cleared.work.cycles.usage_limit import find_usage_limit, names_limit, read_reset
from cleared.workspace.settings.ai_cycle_section import ENGINE_NAMES
from cleared.workspace.settings.loading import load_config
from cleared.workspace.settings.model import Config

NOW = datetime(2026, 11, 22, 18, 30, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")

VECTORS = {
    "codex": ("exec --json --color never --skip-git-repo-check --sandbox danger-full-access{} -", " --model M"),
    "qwen": ("--yolo --output-format stream-json{}", " --model M"),
    "opencode": ("run --format json --auto{}", " --model M"),
    "claude": (
        "-p --output-format stream-json --verbose --dangerously-skip-permissions --no-session-persistence{}",
        " --model M",
    ),
}


@pytest.mark.parametrize("name", ENGINE_NAMES)
def test_f1_f4_the_argument_vector(name: str) -> None:
    """F1, F4: the exact vector; MODEL unset omits its flag; the sandbox mode is passed verbatim."""
    engine = load_engine(name)
    vector, model = VECTORS[name]
    assert " ".join(engine.arguments(LaunchOptions())) == vector.format("")
    assert " ".join(engine.arguments(LaunchOptions("M"))) == vector.format(model)
    if name == "codex":
        assert "read-only" in engine.arguments(LaunchOptions(None, "read-only"))
    assert engine.name == name and engine.verified and engine.binary_variable == f"{name.upper()}_BIN"


@pytest.mark.parametrize("name", ENGINE_NAMES)
def test_f1_f3_what_each_engine_receives(
    cyc: Workspace, engines: dict[str, FakeEngine], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1, F3, F4: the program that the variable names gets the exact vector and the prompt, and little else; the start
    says what it may do."""
    engine = engines[name]
    engine.plan(good())
    monkeypatch.setenv(load_engine(name).binary_variable, str(engine.binary))
    monkeypatch.setenv("MODEL", "M")
    monkeypatch.setenv("SECRET_OF_ANOTHER_PROGRAM", "x")
    done = cyc("cycle", "start", "--engine", name, "--allow-ai", "--max-cycles", "1")
    (call,) = engine.calls
    vector, model = VECTORS[name]
    assert done.code == 0 and " ".join(call["argv"]) == vector.format(model) and "## Guardrails" in call["prompt"]
    assert "SECRET_OF_ANOTHER_PROGRAM" not in call["environment"] and "TMPDIR" in call["environment"]
    assert ("danger-full-access" if name == "codex" else "without asking") in done.err


def test_a_fifth_engine_is_one_module() -> None:
    with pytest.raises(UsageError, match="no engine 'gemini'"):
        load_engine("gemini")
    names = {(load_engine(n).pid_file, load_engine(n).main_log, load_engine(n).cycle_log(7, "S")) for n in ENGINE_NAMES}
    assert (".auto-loop.pid", "logs/auto-loop.log", "logs/cycle-0007-S.log") in names
    assert (".auto-loop-qwen.pid", "logs/auto-loop-qwen.log", "logs/cycle-qwen-0007-S.log") in names
    assert (".auto-loop-opencode.pid", "logs/auto-loop-opencode.log", "logs/cycle-opencode-0007-S.log") in names
    assert len(names) == 4


OUTPUTS = [
    ("claude", '{"type":"result","is_error":false,"result":"hi","total_cost_usd":0.5}', ("hi", "0.5", False, "")),
    (
        "claude",
        '{"type":"result","is_error":true,"result":"You\'ve hit your limit · resets 9pm"}',
        ("You've hit your limit · resets 9pm", None, True, "You've hit your limit · resets 9pm"),
    ),
    (
        "claude",
        '{"type":"result","is_error":false,"result":"I wrote about the rate limit"}',
        ("I wrote about the rate limit", None, False, ""),
    ),
    (  # the settings of the engine say verbose: all events in one list
        "claude",
        '[{"type":"system"},{"type":"result","is_error":false,"result":"hi","total_cost_usd":0.5}, 7]',
        ("hi", "0.5", False, ""),
    ),
    (
        "claude",
        '{"type":"result","is_error":true,"api_error_status":429,"result":"API Error"}',
        ("API Error", None, True, "API Error"),
    ),
    ("qwen", '{"type":"system"}\n{"type":"result","is_error":false,"result":"ok"}', ("ok", None, False, "")),
    (
        "qwen",
        '{"type":"result","is_error":true,"error":{"message":"Quota exceeded"}}',
        ("Quota exceeded", None, True, "Quota exceeded"),
    ),
    (
        "codex",
        '{"type":"item.completed","item":{"type":"agent_message","text":"done"}}\n{"type":"turn.completed"}',
        ("done", None, False, ""),
    ),
    (  # the line was down, and came back
        "codex",
        '{"type":"error","message":"Reconnecting... 2/5 (rate limit of the approval gateway)"}\n'
        '{"type":"item.completed","item":{"type":"agent_message","text":"done"}}\n{"type":"turn.completed"}',
        ("done", None, False, ""),
    ),
    (
        "codex",
        '{"type":"turn.failed","error":{"message":"You\'ve hit your usage limit. Try again in 40 minutes."}}',
        ("", None, True, "You've hit your usage limit. Try again in 40 minutes."),
    ),
    (
        "opencode",
        '{"type":"text","part":{"text":"a"}}\n{"type":"step_finish","part":{"cost":0.1}}\n'
        '{"type":"step_finish","part":{"cost":0.2}}',
        ("a", "0.3", False, ""),
    ),
    (
        "opencode",
        '{"type":"error","error":{"data":{"message":"Too Many Requests"}}}',
        ("", None, True, "Too Many Requests"),
    ),
    ("claude", 'no json\n{broken\n[1]\n{"type": 5}', ("", None, False, "")),
    ("codex", "{" * 50_000, ("", None, False, "")),
]


@pytest.mark.parametrize(("name", "output", "expected"), OUTPUTS)
def test_f36_what_an_output_says(name: str, output: str, expected: tuple[str, str | None, bool, str]) -> None:
    """F36: the cost is read from the engine's JSON; nothing in an output raises."""
    report = load_engine(name).read_output(output)
    cost = Decimal(expected[1]) if expected[1] else None
    assert (report.text, report.cost, report.failed, report.limit) == (expected[0], cost, expected[2], expected[3])


@pytest.mark.parametrize(
    ("name", "output", "tokens"),
    [
        (
            "claude",
            '{"type":"result","usage":{"input_tokens":1,"cache_read_input_tokens":20,"output_tokens":300}}',
            321,
        ),
        ("codex", '{"type":"turn.completed","usage":{"input_tokens":7,"cached_input_tokens":5,"output_tokens":2}}', 9),
        ("opencode", '{"type":"step_finish","part":{"tokens":{"input":1,"output":2,"cache":{"read":4}}}}', 7),
        ("qwen", '{"type":"result","usage":{"input_tokens":-1,"output_tokens":1e9,"total_tokens":5}}', 0),
        ("opencode", '{"type":"step_finish","part":{"tokens":[1],"cost":1}}', 0),
    ],
)
def test_what_an_output_says_of_tokens(name: str, output: str, tokens: int) -> None:
    assert load_engine(name).read_output(output).tokens == tokens


def said(text: str, number: int = 1, **usage: int) -> str:
    """What Claude Code prints of a part of a message."""
    content = [{"type": "text", "text": text}, {"type": "tool_use", "name": "Bash", "input": {"command": f"do {text}"}}]
    message = {"id": f"m{number}", "model": "claude-sonnet-4-5", "content": content, "usage": usage}
    return json.dumps({"type": "assistant", "message": message}) + "\n"


def test_f36_what_a_cycle_has_cost_is_counted_at_a_timeout_too(cyc: Workspace, engine: FakeEngine) -> None:
    """And what the engine says and does is seen while it works, without secrets."""
    parts = [said("one", input_tokens=10), said("sk-ant-" + "s" * 40, input_tokens=1000, output_tokens=1000), "{no\n"]
    output = [*parts, said("two", 2, cache_read_input_tokens=100_000), '{"type": "assistant", "message": [1]}\n']
    engine.plan({"stdout": "".join(output), "hang": True})
    process = begin_hanging(cyc, engine, "--timeout", "6", "--max-cycles", "1")
    log = cyc.root / "logs/auto-loop-claude.log"
    wait_until(lambda: "two; Bash: do two" in log.read_text(), process)
    assert "one; Bash: do one" in log.read_text() and "s" * 40 not in log.read_text()
    process.communicate(timeout=PATIENCE)
    state = cyc.json("cycle", "status")
    assert state["last_cycle"]["summary"] == "its time was over, and it left no new consensus"
    assert state["total_tokens"] == 102_000
    assert Decimal(state["total_cost"]) == Decimal("0.048")  # 1,000 × 3 + 1,000 × 15 + 100,000 × 0.30, a million


@pytest.mark.parametrize(
    ("name", "event", "expected"),
    [
        ("codex", {"type": "item.started", "item": {"type": "command_execution", "command": "npm test"}}, "npm test"),
        ("codex", {"type": "item.completed", "item": {"type": "agent_message", "text": "done"}}, "done"),
        (
            "codex",
            {
                "type": "item.completed",
                "item": {"changes": [{"kind": "add", "path": "a.md"}, 1], "type": "file_change"},
            },
            "add a.md",
        ),
        ("codex", {"type": "error", "message": "Reconnecting... 1/5"}, "Reconnecting... 1/5"),
        ("codex", {"type": "item.started", "item": 5}, ""),
        ("opencode", {"type": "tool_use", "part": {"tool": "bash", "state": {"input": {"command": "ls"}}}}, "bash: ls"),
        ("opencode", {"type": "text", "part": {"text": "a"}}, "a"),
        ("opencode", {"type": "text", "part": [1]}, ""),
        ("qwen", {"type": "assistant", "message": {"content": "text"}}, ""),
    ],
)
def test_what_an_event_says(name: str, event: dict[str, Any], expected: str) -> None:
    assert load_engine(name).describe_event(event) == expected


@pytest.mark.parametrize(
    ("info", "until"),
    [
        ({"status": "rejected", "resetsAt": int(NOW.timestamp()) + 90}, NOW + timedelta(seconds=90)),
        ({"status": "allowed_warning", "resetsAt": int(NOW.timestamp()) + 90}, None),
        ({"status": "rejected", "resetsAt": int(NOW.timestamp()) - 90}, None),  # long ago
        ({"status": "rejected", "resetsAt": 10**18}, None),
        ({"status": "rejected", "resetsAt": "soon"}, None),
    ],
)
def test_f18_a_time_of_its_own_beats_the_words(info: dict[str, Any], until: datetime | None) -> None:
    """F18: the words name a minute; what the engine says besides, a second."""
    events = [
        {"type": "rate_limit_event", "rate_limit_info": info},
        {"type": "result", "is_error": True, "api_error_status": 429, "result": "You've hit your limit"},
    ]
    report = load_engine("claude").read_output("\n".join(map(json.dumps, events)))
    limit = find_limit(EngineRun(1, "itself", "", ""), report, NOW)
    assert limit is not None and limit.until == until and limit.words == "You've hit your limit"


def test_a_cap_that_counts_nothing_is_said(cyc: Workspace, engine: FakeEngine) -> None:
    cyc.config("loop.ai.cost_cap=5")
    engine.plan(good())
    for name, is_said in (("claude", False), ("codex", True)):
        argv = ("--engine", name, f"--{name}-bin", str(engine.binary), "--max-cycles", "1")
        done = cyc("cycle", "start", "--allow-ai", *argv)
        assert ("loop.ai.max_minutes" in done.err) == is_said, done


@pytest.mark.parametrize("cost", ["-1", "NaN", "1e999", True, None, [1], "x"])
def test_a_cost_that_is_none_counts_nothing(cost: object) -> None:
    import json

    output = json.dumps({"type": "result", "result": "x", "total_cost_usd": cost})
    found = load_engine("claude").read_output(output).cost
    assert found is None or found.is_finite()


@pytest.mark.parametrize(
    "text", ["Error on line 1429", "see issue 429", 'he said "the limit is near"', "limits: 3", "unlimited", "line 429"]
)
def test_f16_no_false_limit(text: str) -> None:
    """F16: numbers and words that look like one are ordinary failures."""
    assert find_usage_limit("", text, failed=True, now=NOW, zone=BERLIN) is None


@pytest.mark.parametrize(
    "text",
    [
        "You've hit your usage limit",
        "Claude AI usage limit reached|1763842800",
        "rate limit exceeded",
        "HTTP 429 Too Many Requests",
        "5-hour limit reached ∙ resets 9pm",
        "insufficient_quota",
    ],
)
def test_f15_f17_a_limit_counts_at_the_end_of_a_failed_run_only(text: str) -> None:
    """F15, F17: by text only where the run failed, and only in its last lines."""
    assert names_limit(text)
    assert find_usage_limit("", f"work\n{text}\n", failed=True, now=NOW, zone=BERLIN) is not None
    assert find_usage_limit("", f"work\n{text}\n", failed=False, now=NOW, zone=BERLIN) is None
    assert find_usage_limit("", text + "\nline" * 9, failed=True, now=NOW, zone=BERLIN) is None
    assert find_usage_limit(text, "", failed=False, now=NOW, zone=BERLIN) is not None, "the engine itself says so"


RESETS = [
    ("resets 9pm", "2026-11-22T20:00:00+00:00"),  # 21:00 in Berlin
    ("resets at 7:15pm", "2026-11-23T18:15:00+00:00"),  # 19:15 was a quarter of an hour ago: tomorrow
    ("resets 9pm (America/New_York)", "2026-11-23T02:00:00+00:00"),
    ("resets 12am", "2026-11-22T23:00:00+00:00"),
    ("try again in 40 minutes", "2026-11-22T19:10:00+00:00"),
    ("try again in 2 hours", "2026-11-22T20:30:00+00:00"),
    ("resets at 2026-11-23T09:00:00Z", "2026-11-23T09:00:00+00:00"),
    ("usage limit reached|1795384800", "2026-11-22T22:00:00+00:00"),
    ("try again at Nov 27th, 2026 9:14 PM", "2026-11-27T20:14:00+00:00"),
    ("resets Nov 24 at 9am (America/New_York)", "2026-11-24T14:00:00+00:00"),
    ("resets Jan 2nd 9:14 AM", None),  # further than a week
    ("resets Feb 30th 9:14 AM", None),
    ("resets 25pm", None),
    ("resets soon", None),
    ("resets 2020-01-01T00:00:00Z", None),
    ("resets 9pm (Mars/Olympus)", None),
    ("resets 9pm (../../etc/passwd)", "2026-11-22T20:00:00+00:00"),
    ("resets 2027-12-01T00:00:00Z", None),
    ("try again in 99999 days", None),
]


@pytest.mark.parametrize(("text", "until"), RESETS)
def test_f18_reset_times(text: str, until: str | None) -> None:
    """F18: with and without a zone, past midnight, absurd ones."""
    found = read_reset(text, NOW, BERLIN)
    assert (found.isoformat() if found else None) == until
    assert found is None or NOW <= found <= NOW + timedelta(days=8)


def test_f18_an_administrative_stop_is_not_waited_for() -> None:
    """F18: a disabled account needs a person."""
    words = "Your organization has been disabled. Contact billing. resets 9pm"
    limit = find_usage_limit(words, "", failed=True, now=NOW, zone=BERLIN)
    assert limit is not None and limit.is_administrative and limit.until is None


def test_settings_flag_environment_config() -> None:
    """Flag over environment over approved configuration over default; every documented variable."""
    config = load_config("loop: {ai: {interval_seconds: 7, model: from-config}}\n")
    default = read_cycle_settings(Config(), {}, {})
    assert (default.interval_seconds, default.cycle_timeout_seconds, default.max_consecutive_errors) == (30, 1800, 5)
    assert (default.cooldown_seconds, default.limit_wait_seconds, default.max_logs) == (300, 3600, 200)
    assert default.launch == LaunchOptions(None, "danger-full-access") and default.binary == "codex"
    assert read_cycle_settings(config, {}, {}).interval_seconds == 7
    environment = {"LOOP_INTERVAL": "8", "MODEL": "env", "CODEX_BIN": "/x/codex", "CODEX_SANDBOX_MODE": "read-only"}
    by_environment = read_cycle_settings(config, {}, environment)
    assert (by_environment.interval_seconds, by_environment.binary) == (8, "/x/codex")
    assert by_environment.launch == LaunchOptions("env", "read-only")
    assert read_cycle_settings(config, {"interval_seconds": 9.0}, environment).interval_seconds == 9
    assert {variable for _, variable in OVERRIDES.values()} >= {
        "LOOP_INTERVAL",
        "CYCLE_TIMEOUT_SECONDS",
        "MAX_CONSECUTIVE_ERRORS",
        "COOLDOWN_SECONDS",
        "LIMIT_WAIT_SECONDS",
        "MAX_LOGS",
        "MODEL",
        "CODEX_BIN",
        "QWEN_BIN",
        "CODEX_SANDBOX_MODE",
    }
    for wrong in ({"LOOP_INTERVAL": "soon"}, {"MAX_LOGS": "1.5"}, {"MAX_LOGS": "0"}, {"MODEL": "a\nb"}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            read_cycle_settings(config, {}, wrong)


def test_f39_opt_in_takes_the_settings_and_the_start() -> None:
    """F39: neither alone is enough."""
    enabled = load_config("loop: {ai: {enabled: true}}\n")
    with pytest.raises(PolicyError, match="not switched on"):
        require_opt_in(Config(), True, {"CLEARED_ALLOW_AI": "1"})
    for environment in ({}, {"CLEARED_ALLOW_AI": "0"}, {"CLEARED_ALLOW_AI": "yes"}):
        with pytest.raises(PolicyError, match="does not allow it"):
            require_opt_in(enabled, False, environment)
    require_opt_in(enabled, True, {})
    require_opt_in(enabled, False, {"CLEARED_ALLOW_AI": "1"})


def test_an_engine_gets_the_variables_that_the_settings_name(
    cyc: Workspace, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each by its name, or by what it begins with; their secrets are not in the log."""
    cyc.config("loop.ai.environment=[PROXY_TOKEN, AWS_*, CL*]")
    given = {"PROXY_TOKEN": "hunter2hunter2", "AWS_REGION": "eu-1", "https_proxy": "http://proxy:1", "OTHER_KEY": "no"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    engine.plan(good(stderr="the token is hunter2hunter2\n"))
    assert start(cyc, engine).code == 0
    [call] = engine.calls
    seen = call["environment"]
    assert {name: seen.get(name) for name in given} == given | {"OTHER_KEY": None}
    assert seen.get("IS_SANDBOX") == ("1" if landlock_abi() else None) and "CLEARED_CLOCK" not in seen
    [log] = cyc.root.glob("logs/cycle-claude-0001-*")
    assert "the token is [redacted]" in log.read_text()


def test_no_setting_hands_an_engine_what_starts_it(cyc: Workspace) -> None:
    for name in ("PATH", "GIT_DIR", "ld_preload", "CLEARED_HOME", "A", "*", "X=1", "A-B", "A*B"):
        refused(cyc("config", "set", "loop.ai.environment", json.dumps([name])), 4, "loop.ai.environment")
