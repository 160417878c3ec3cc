"""``sandbox.transport: bridge`` against ``direct``: the same results, the same errors, the same commits."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace, copy_books
from patience import PATIENCE

from cleared.base.errors import PolicyError, PrimitiveError, WorkspaceError
from cleared.cli.demo.sample_firm import agent_text, bank_files, demo_files
from cleared.sandbox.bridge.client import BridgeExecutor
from cleared.sandbox.executor import ScriptRun
from cleared.sandbox.limits import Limits
from cleared.sandbox.monty import Sandbox
from cleared.sandbox.script_failure import HostCallFailed, Position, ScriptError
from cleared.trust.approval_record import WORKSPACE
from cleared.trust.checkpoint import begin_checkpoint
from cleared.trust.trust_store import load_trust

NOW = datetime(2025, 2, 1, 6, tzinfo=UTC)


@pytest.fixture(scope="module")
def direct() -> Iterator[Sandbox]:
    with Sandbox() as found:
        yield found


@pytest.fixture(scope="module")
def bridge() -> Iterator[BridgeExecutor]:
    with BridgeExecutor() as found:
        yield found


class Host:
    """Primitives that keep what they were called with."""

    def __init__(self, executor: Any) -> None:
        self.executor = executor
        self.calls: list[Any] = []
        self.printed: list[str] = []

    def __call__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], at: Position) -> Any:
        self.calls.append((name, args, kwargs, at))
        return getattr(self, name)(*args, **kwargs)

    def f(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if args else kwargs or None

    def take(self, value: Any) -> Any:
        """Only its type and text are of interest."""
        self.calls[-1] = ("take", (type(value).__name__, str(value)[:5]), {}, self.calls[-1][3])

    def refuse(self) -> Any:
        raise PolicyError("not allowed", remedy="Ask.")

    def explode(self) -> Any:
        raise KeyError("inside")

    def nested(self, text: str, **inputs: Any) -> Any:
        return self.run(text, inputs=inputs, file="scripts/inner.py")

    def run(self, text: str, **options: Any) -> Any:
        options = {"file": "agents/a.py", "limits": Limits(seconds=60)} | options
        return self.executor.run(
            ScriptRun(
                text,
                call=self,
                names=["f", "take", "refuse", "explode", "nested"],
                now=NOW,
                seed="seed",
                timezone="Europe/London",
                on_print=self.printed.append,
                **options,
            )
        )


def story(executor: Any, text: str, **options: Any) -> dict[str, Any]:
    """All that can be seen of a run."""
    host = Host(executor)
    told: dict[str, Any] = {}
    try:
        value = host.run(text, **options)
        told["result"], told["types"] = value, repr(value)
    except ScriptError as e:
        told["error"] = (type(e), e.message, e.kind, e.type, e.place, e.remedy, e.frames, e.traceback)
    except HostCallFailed as e:
        told["error"] = (type(e), e.message, e.name, e.position, e.place, e.remedy, e.frames, e.exit_code, e.traceback)
        told["original"] = (type(e.original), str(e.original))
    told["calls"] = [(name, repr(args), repr(kwargs), at) for name, args, kwargs, at in host.calls]
    told["printed"] = "".join(host.printed)
    return told


SCRIPTS = [
    "1 + 1",
    "print('a')\nf(1)\nprint('b', end='')\nNone",
    "f(1, 2.5, 'x', True, None, k=[1, {'a': (1, 2)}])",
    "from decimal import Decimal\n[f(Decimal('4.00')), f(Decimal('1E+5')), f(Decimal('NaN')) is None, Decimal('1E-7')]",
    "import datetime\n[f(datetime.date(2025, 1, 2)), f(datetime.datetime(2025, 1, 2, 3)), datetime.datetime.now()]",
    "f(float('inf'))\nf(float('nan'))\nf(b'x')\nf({1, 2})\nf(frozenset([3]))\nf({1: 2, (1, 2): 3})\n1",
    "f({'$decimal': '4.00'})\nf({'$exact': ['int', '0xff']})\nf({'$decimal': 1})\n{'$decimal': 'x'}",
    "f((1, (2, 3)))\n(4, (5,))",
    "f(10 ** 4000)\n10 ** 3999",
    "f('\\u2028\\x00\\n😀')",
    "import random\nimport datetime\n[random.random(), datetime.date.today()]",
    "take(int)\ntake(ValueError('x'))\ntake(range(3))\ntake(...)\ntake(f)",
    "nested('f(x) * 2', x=21)",
    "nested('nested(\"f(y)\", y=x)', x=[1, 'z'])",
    "nested('import datetime\\ndatetime.date(2025, 1, 2)').year",
    "nested('x = 1\\n1 / 0')",
    "nested('refuse()')",
    "x = 1\n\ndef g():\n    return refuse()\n\ng()",
    "try:\n    refuse()\nexcept Exception:\n    pass\nf(1)",
    "f(1)\nexplode()",
    "1 / 0",
    "def g(n):\n    return g(n + 1)\n\ng(0)",
    "f(",
    "x = ''\n    y",
    "unknown(1)",
    "raise ValueError('say ' + 'so' * 2000)",
    "{1, 2}",
    "{'a': [1, {2: 3}]}",
    "'x' * 2_000_000",
    "print('y' * 100)\nprint('z' * 2_000_000)",
    "x = [0] * 10 ** 9",
    "import os\nos.getcwd()",
    "import nothing",
    "open('/etc/passwd').read()",
    "list(map(f, [1]))",
    "for i in range(100):\n    f(i)",
]


@pytest.mark.parametrize("text", SCRIPTS)
def test_a_script_is_the_same_over_both_transports(direct: Sandbox, bridge: BridgeExecutor, text: str) -> None:
    limits = Limits(seconds=60, max_calls=50)
    assert story(bridge, text, limits=limits) == story(direct, text, limits=limits)


def test_the_deadline_is_the_hosts_and_counts_its_own_time(direct: Sandbox, bridge: BridgeExecutor) -> None:
    for executor in (direct, bridge):
        for text in ("while True:\n    pass", "while True:\n    f(1)", "f(1)\ntake(0.7)"):
            host = Host(executor)
            host.take = threading.Event().wait  # type: ignore[method-assign,assignment]
            with pytest.raises(ScriptError) as ended:
                host.run(text, limits=Limits(seconds=0.5))
            assert ended.value.kind == "timeout" and ended.value.type == "TimeoutError"
        with pytest.raises(ScriptError, match="no time left"):
            Host(executor).run("1", deadline=0.0)
        assert Host(executor).run("1 + 1") == 2


def test_the_original_exception_comes_back(bridge: BridgeExecutor) -> None:
    mine = PrimitiveError("just this one", remedy="Do that.")

    def call(*_: Any) -> Any:
        raise mine

    with pytest.raises(HostCallFailed) as failed:
        bridge.run(ScriptRun("p()", file="a.py", call=call, names=["p"], limits=Limits(), now=NOW, seed="s"))
    assert failed.value.original is mine and failed.value.__cause__ is mine
    assert failed.value.position == Position("a.py", 1, 1)


def test_a_result_that_cannot_cross_fails_the_call(bridge: BridgeExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.sandbox.bridge.jsonrpc.MAX_LINE", 5_000)
    with pytest.raises(HostCallFailed, match="cannot cross to the bridge") as failed:
        bridge.run(
            ScriptRun("p()", file="a.py", call=lambda *_: "x" * 6_000, names=["p"], limits=Limits(), now=NOW, seed="s")
        )
    assert isinstance(failed.value.original, WorkspaceError)


def test_what_on_print_raises_ends_the_run(bridge: BridgeExecutor) -> None:
    def full(text: str) -> None:
        raise WorkspaceError("the disk is full")

    with pytest.raises(WorkspaceError, match="full"):
        bridge.run(
            ScriptRun(
                "print(1)\nwhile True:\n    pass",
                file="a.py",
                call=lambda *_: None,
                names=[],
                limits=Limits(),
                now=NOW,
                seed="s",
                on_print=full,
            )
        )
    assert Host(bridge).run("1") == 1


def test_threads_share_a_bridge(bridge: BridgeExecutor) -> None:
    results: dict[int, Any] = {}

    def one(n: int) -> None:
        results[n] = Host(bridge).run(f"[f({n}) for i in range(50)] + [nested('f(x)', x={n})]")

    threads = [threading.Thread(target=one, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: [n] * 51 for n in range(6)}


def child_of(executor: BridgeExecutor) -> int:
    assert executor._child is not None
    return executor._child._process.pid


@pytest.mark.parametrize("when", ["computing", "waiting"])
def test_a_bridge_that_dies_is_a_crash_and_the_next_run_has_a_new_one(when: str) -> None:
    with BridgeExecutor() as bridge:
        assert Host(bridge).run("1") == 1
        pid = child_of(bridge)

        def kill() -> None:
            os.kill(pid, signal.SIGKILL)

        if when == "computing":
            threading.Timer(0.5, kill).start()
            with pytest.raises(ScriptError, match="ended by signal 9") as ended:
                Host(bridge).run("while True:\n    pass", limits=Limits(seconds=600))
        else:
            host = Host(bridge)
            host.f = lambda: kill()  # type: ignore[method-assign]
            with pytest.raises(ScriptError) as ended:
                host.run("f()")
        assert ended.value.kind == "crash" and ended.value.place is not None
        assert Host(bridge).run("2") == 2
        assert child_of(bridge) != pid


def test_what_is_no_bridge_is_a_crash_not_a_hang() -> None:
    for command in (
        ["false"],
        [sys.executable, "-c", "print('no json')"],
        [sys.executable, "-c", "print('{\"id\":1}')"],
    ):
        with BridgeExecutor(command=command) as bridge, pytest.raises(ScriptError) as ended:
            Host(bridge).run("1")
        assert ended.value.kind == "crash"
    with BridgeExecutor(command=["/nonexistent"]) as bridge, pytest.raises(WorkspaceError, match="cannot start"):
        Host(bridge).run("1")


def test_a_bridge_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.sandbox.bridge.client._GRACE", 0.3)
    with BridgeExecutor(command=[sys.executable, "-c", "import time; time.sleep(60)"]) as bridge:
        with pytest.raises(ScriptError) as ended:
            Host(bridge).run("1", limits=Limits(seconds=0.2))
        assert ended.value.kind == "timeout"


def test_closing_leaves_nothing_behind() -> None:
    with BridgeExecutor() as bridge:
        Host(bridge).run("1")
        pid = child_of(bridge)
    assert not Path(f"/proc/{pid}").exists()
    bridge.close()


def test_confinement_is_the_bridges_too() -> None:
    with BridgeExecutor(confine="off") as bridge:
        assert Host(bridge).run("1") == 1


def test_a_cleared_in_the_current_directory_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cleared").mkdir()
    (tmp_path / "cleared/__init__.py").write_text("raise SystemExit('hijacked')")
    (tmp_path / "json.py").write_text("raise SystemExit('hijacked')")
    monkeypatch.chdir(tmp_path)
    with BridgeExecutor() as bridge:
        assert Host(bridge).run("1") == 1


# -- the main job -----------------------------------------------------------------------------------------------------


def over_bridge(ws: Workspace) -> Workspace:
    """A copy of the workspace whose scripts run behind a bridge."""
    root = ws.root.with_name("bridged")
    copy_books(ws.root, root)
    copy = Workspace(root)
    for workspace, transport in ((copy, "bridge"), (ws, "direct")):
        workspace.config("sandbox.transport=bridge", f"sandbox.transport={transport}", "sandbox.timeout=29")
        # How each came to its transport is not what is compared.
        workspace.git("reset", "-q", "--soft", "HEAD^" if transport == "bridge" else "HEAD^^")
        workspace.git("checkout", "-q", "HEAD", "--", "logs")
        workspace.git("commit", "-q", "-m", "transport")
        # Nothing here remembers the commits that are gone.
        begin_checkpoint(workspace.root)
        for name in workspace.git("for-each-ref", "--format=%(refname)", "refs/worktree").split():
            workspace.git("update-ref", "-d", name)
    # Nor that the settings of one took the place of the other's.
    trust = load_trust(ws.read(WORKSPACE).strip())
    trust.withdrawn.clear()
    trust.newest.clear()
    trust.save()
    return copy


def same(one: Any, two: Any) -> None:
    """Equal but for ids, hashes, times of this very run, and the name of the transport."""

    def plain(value: Any) -> str:
        text = re.sub(r"\d{8}T\d{6}Z-[0-9a-f]{6}", "RUN", repr(value))
        ids = r"\b(?:[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32}|[0-9a-f]{10})\b|'duration_ms': \d+"
        ids += r'|Origin(?:: |":")[0-9a-f]{12}|"(?:signature|sum)":"[^"]+"'
        return re.sub(rf"{ids}|transport: (?:direct|bridge)", "…", text)

    assert plain(one) == plain(two)


def books(ws: Workspace) -> Any:
    files = ws.state().files
    return {p: d for p, d in sorted(files.items()) if "approvals/" not in p}, ws.git("log", "--format=%s%n%b%an")


def test_the_main_job_makes_the_same_commit_over_both_transports(ws: Workspace) -> None:
    for path, content in demo_files().items():
        ws.put(path, content)
    ws.put("agents/ingest.py", agent_text())
    ws.commit("agents/ingest.py", *demo_files(), *ws.approve("agents/ingest.py"))
    bridged = over_bridge(ws)
    for workspace in (ws, bridged):
        for name, content in list(bank_files().items())[:2]:
            workspace.drop(name, content)
    runs = [w.run("ingest") for w in (ws, bridged)]
    assert len(runs[0]["entries"]) > 20 and runs[0]["status"] == "succeeded"
    same(*runs)
    same(books(ws), books(bridged))
    bridged.in_order()


AGENTS = [
    'journal_add_double(date="2025-01-05", description="x", debit_account=5020, credit_account=1010, amount="4.001")',
    'journal_add_double(date="2025-01-05", description=ctx_now, debit_account=5020, credit_account=1010, amount=4)',
    'import datetime\njournal_add_double(date=datetime.date(2025, 1, 5), description="x", debit_account=5020, '
    'credit_account=1010, amount=4.10)\nprint("done")\njournal_query()[0]["amount"]',
    'import datetime\njournal_add_double("2025-01-05", datetime.date(2025, 1, 5), 5020, 1010, 4)',
    'ctx_emit("x.y", {"a": (1, 2), "b": {3}})',
    'ctx_emit("x.y", float("nan"))',
    'ctx_emit("x.y", {1: 2})',
    'script_run("vendor_name", description="SQ *BLUE BOTTLE 1234")',
    'script_run("nothing")',
    "try:\n    accounts_get(9999)\nexcept Exception:\n    pass\nctx_log('went on')",
    "journal_void()",
    "1 / 0",
    "jurnal_query()",
]


@pytest.mark.parametrize("body", AGENTS)
def test_an_agent_ends_the_same_over_both_transports(ws: Workspace, body: str) -> None:
    ws.agent("probe", body)
    bridged = over_bridge(ws)
    ended = [w("agent", "run", "probe", "--json") for w in (ws, bridged)]
    same([d.code for d in ended], [d.code for d in ended][::-1])
    same(ended[0].json, ended[1].json)
    same(ended[0].err, ended[1].err)
    same(books(ws), books(bridged))


def test_ctrl_c_stops_a_bridged_run_and_changes_nothing(ws: Workspace) -> None:
    ws.agent("probe", "ctx_log('started')\nwhile True:\n    pass")
    ws.config("sandbox.transport=bridge")
    before = ws.state()
    process = ws.start("agent", "run", "probe")
    assert process.stderr is not None and b"started" in process.stderr.readline()
    bridges = set(children(process.pid))
    assert bridges
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert b"Traceback" not in told
    assert ws.state() == before
    assert not any(Path(f"/proc/{pid}").exists() for pid in bridges)


def children(of: int) -> list[int]:
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(of)], capture_output=True, check=False)
    return [int(pid) for pid in done.stdout.split()]


def test_exact_values_survive_both_ways() -> None:
    from cleared.sandbox.bridge import value_codec

    values = [
        None,
        True,
        0,
        -(10**4500),
        1.5,
        Decimal("4.00"),
        Decimal("1E+90"),
        Decimal("-0"),
        date(2025, 1, 2),
        NOW,
        (1, (2,)),
        {1, 2},
        frozenset("a"),
        b"\0\xff",
        {"$exact": 1},
        {"$decimal": "1"},
        {1: {None: "x"}},
        [[[]]],
        {},
    ]
    encode: Callable[[Any], Any] = lambda v: value_codec.encode_value(v, exact=True)  # noqa: E731
    for value in values:
        again = value_codec.decode_value(encode(value), exact=True)
        assert again == value and repr(again)[:100] == repr(value)[:100] if not isinstance(value, int) else True
        assert type(again) is type(value)
    for broken in (
        ["int", "zz"],
        ["set", [[1]]],
        ["dict", [1]],
        ["nope"],
        "x",
        ["date", "2025-02-30"],
        ["other", "\0", ""],
    ):
        with pytest.raises(ValueError, match="malformed"):
            value_codec.decode_value({"$exact": broken}, exact=True)
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    assert value_codec.encode_value(deep, exact=True)
    with pytest.raises(ValueError, match="nested"):
        value_codec.encode_value(deep, exact=False)
