"""Every script of the corpus is stopped twice: by the lint, and, without any lint, by sandbox and host."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corpus import CASES, Case
from harness import Workspace, copy_books, environment
from msgspec import structs
from peers import BRIDGE, peer, request, script

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError
from cleared.changes import workspace_opening
from cleared.changes.host import Host
from cleared.changes.trace import TraceStore
from cleared.git import Repository, Snapshot, blob_id
from cleared.runs.approved_scripts import Script, Scripts
from cleared.runs.attempt import Attempt, Event, Resumption
from cleared.sandbox.construct_lint import lint_script
from cleared.sandbox.executor import ScriptRun
from cleared.sandbox.header import Header
from cleared.sandbox.monty import Sandbox

SECONDS = 0.8
HOST_SECONDS = 3.0  # of the processor, which a script may have the host use; what never ends would wait for ever
MEMORY_MB = 128
HOST_MB = 400  # what a script of 128 MB may cost the host for a moment: its text decoded, copied, clipped
ENV = "ESCAPE_CANARY"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@dataclasses.dataclass
class World:
    """A workspace, the canaries around it, and one warm sandbox."""

    ws: Workspace
    host: Host
    repo: Repository
    sandbox: Sandbox
    secret: str
    canary: Path
    listener: socket.socket

    def text(self, case: Case) -> str:
        given = {
            "@FILE@": str(self.canary / "secret.txt"),
            "@OUT@": str(self.canary / "out"),
            "@ENV@": ENV,
            "@PORT@": str(self.listener.getsockname()[1]),
        }
        text = case.script
        for key, value in given.items():
            text = text.replace(key, value)
        return text

    def attempt(self, source: str, executor: Any) -> tuple[Any, ClearedError | None, str]:
        """Run a text that nothing has checked, with all primitives but ``git_commit``: result, refusal, all it told."""
        names = frozenset(self.host.registry) - {"git_commit"}
        header = Header("Escape", grants=tuple(sorted(names)), timeout=SECONDS, memory_mb=MEMORY_MB)
        blob = blob_id(source.encode("utf-8", "replace"), "sha1")
        made = Script("escape", "agents/escape.py", source, blob, header, grants=names)
        snapshot = Snapshot(self.repo, self.repo.read_head())
        scripts = Scripts(self.host, snapshot, working_copy=True)
        attempt = Attempt(self.host, self.repo, snapshot, made, Resumption(Event()), dry_run=False, scripts=scripts)
        traces = TraceStore(self.host.layout.state_dir)
        traces.begin_run(
            {
                "id": attempt.run_id,
                "agent": "escape",
                "dry_run": False,
                "started_at": format_iso(attempt.now),
                "event": attempt.event,
                "script": made.file,
                "head": snapshot.commit,
            }
        )
        result, error, told = None, None, ""
        self.host.kept_executor = executor
        try:
            began = time.process_time()
            try:
                result = attempt.execute_script()
            finally:
                used = time.process_time() - began
        except ClearedError as e:
            error = e
            explained = attempt.explain_error(e)
            told = f"{e} {explained.message} {explained.traceback}"
        assert used < HOST_SECONDS, f"the host computed for {used:.1f} s"
        printed = "".join(attempt.printed)
        attempt.log_printed_lines()
        log = [(r.action, r.details) for r in attempt.context.log]
        outcome = {
            "status": "failed",
            "duration_ms": 0,
            "result": result,
            "error": told,
            "message": None,
            "commits": [],
            "entries": [],
            "cards": [],
            "log": log,
        }
        traces.end_run(attempt.run_id, outcome, attempt.calls, attempt.started)
        return result, error, f"{result!r} {told} {printed} {log!r}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, starting_point: Path) -> Iterator[World]:
    top = tmp_path_factory.mktemp("escape")
    canary = top / "canary"
    canary.mkdir()
    secret = f"canary-{secrets.token_hex(12)}"
    (canary / "secret.txt").write_text(secret)
    copy_books(starting_point, top / "books")
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for key in [k for k in os.environ if k.startswith(("GIT_", "CLEARED_"))]:
            patch.delenv(key)
        for key, value in {**environment(top), ENV: secret}.items():
            patch.setenv(key, value)
        others = children()  # what other tests have not ended yet
        listener = stack.enter_context(contextlib.closing(socket.create_server(("127.0.0.1", 0))))
        listener.setblocking(False)
        host = workspace_opening.open_workspace(top / "books")
        sandbox_config = structs.replace(host.config.sandbox, max_output_kb=64)
        host = structs.replace(host, config=structs.replace(host.config, sandbox=sandbox_config))
        repo = stack.enter_context(host.open_for_reading())
        sandbox = stack.enter_context(Sandbox())
        yield World(Workspace(top / "books"), host, repo, sandbox, secret, canary, listener)
        sandbox.close()
        left = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children() - others}
        assert not left, "nothing outlives the sandbox"
        for folder, _, names in os.walk(top / "books"):
            for name in names:
                assert secret.encode() not in Path(folder, name).read_bytes(), f"the secret is in {folder}/{name}"


def children(of: int | None = None) -> set[int]:
    """The processes started by this one, or by another, that have not ended; git answers the repository's reader."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, rest = (entry / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
            except OSError:
                continue
            state, parent = rest.split()[:2]
            if int(parent) == (of or os.getpid()) and state not in "ZX" and name != "git":
                found.add(int(entry.name))
    return found


def megabytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith(name))


@contextlib.contextmanager
def stopped(world: World) -> Iterator[None]:
    """What no script may bring about, however it ends."""
    before, held = world.ws.state(), children()
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    resident = megabytes("VmRSS")
    yield
    peak = megabytes("VmHWM") - resident
    assert peak < HOST_MB, f"the host grew by {peak} MB"
    assert not world.ws.state().changed_since(before), "a file of the workspace was changed"
    assert [p.name for p in world.canary.iterdir()] == ["secret.txt"], "a file was made outside"
    assert (world.canary / "secret.txt").read_text() == world.secret, "a file outside was changed"
    with pytest.raises(BlockingIOError):
        world.listener.accept()
    new = children() - held
    assert len(new) <= 2 and not any(children(pid) for pid in new), "only the sandbox's own workers"


def gives_nothing_away(world: World, case: Case, told: str) -> None:
    assert world.secret not in told, "the secret got out"
    assert "root:" not in told, "a system file got out"


def ids(case: Case) -> str:
    return f"{case.category}: {case.name}"


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 80 and len({ids(c) for c in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_with_lint(world: World, case: Case) -> None:
    """Refused by name of the rule; or legal language, and the real command comes to nothing worse than a failed run."""
    source = world.text(case)
    rules = [f.rule for f in lint_script(source, "agents/escape.py")]
    if case.lint is None:
        assert not rules
    else:
        assert case.lint in rules
    path = world.ws.put(
        "agents/escape.py",
        f'"""\nname: Escape\ntrigger: on_demand\ntimeout: {SECONDS}\nmemory_mb: {MEMORY_MB}\n"""\n{source}'.encode(),
    )
    try:
        with stopped(world):
            done = world.ws("agent", "run", "escape", "--dry-run", "--json")
    finally:
        path.unlink()
    gives_nothing_away(world, case, done.out + done.err)
    assert not set("\x1b\x07\x9b") & set(done.out + done.err), "the terminal is not the script's"
    if case.lint is not None:
        assert done.code == 3, "refused before it runs"
    else:
        # `git_commit` is granted here; nothing is sealed. What the types or traps find is not even begun.
        assert done.code in (0, 1) or (done.code == 3 and "it was not run" in done.err), done
    assert done.json, "one JSON value, whatever the script printed"


def test_the_gate_runs_none_of_what_the_lint_refuses(world: World) -> None:
    """``agent check --all`` over the lot: a finding for each, and no rehearsal."""
    refused = {f"x{number}": case for number, case in enumerate(CASES) if case.lint is not None}
    for name, case in refused.items():
        header = f'"""\nname: {name}\ntrigger: on_demand\n"""\n'
        world.ws.put(f"agents/{name}.py", f"{header}{world.text(case)}".encode())
    try:
        before = world.ws.state()
        done = world.ws("agent", "check", "--all", "--json")
        assert not world.ws.state().changed_since(before)
    finally:
        for name in refused:
            (world.ws.root / f"agents/{name}.py").unlink()
    assert done.code == 1 and world.secret not in done.out + done.err
    for name, case in refused.items():
        stages = {stage["stage"]: stage for stage in done.json[name]["stages"]}
        assert stages["lint"]["status"] == "failed" and stages["rehearsal"]["status"] == "skipped"
        assert case.lint in [finding["rule"] for finding in stages["lint"]["findings"]]


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_without_lint(world: World, case: Case) -> None:
    """The interpreter, its limits, the confinement or the host stops it."""
    with stopped(world):
        result, error, told = world.attempt(world.text(case), world.sandbox)
    gives_nothing_away(world, case, told)
    if case.ends == "fails":
        assert error is not None and error.message and result is None, result
    if case.category == "frames":
        assert error is not None or result == "real"


@pytest.fixture(scope="module")
def bridge(world: World) -> Iterator[Any]:
    from cleared.sandbox.bridge.client import BridgeExecutor

    with BridgeExecutor() as executor:
        executor.run(
            ScriptRun(
                "1",
                file="x",
                call=lambda *_: None,
                names=(),
                limits=structs.replace(_limits()),
                now=world.host.clock.now(),
                seed="x",
            )
        )
        yield executor


def _limits() -> Any:
    from cleared.sandbox.limits import Limits

    return Limits(seconds=20)


BRIDGED = [c for c in CASES if c.category == "frames" or "doubled" in c.name or c.name == "nested for ever"]


@pytest.mark.parametrize("case", BRIDGED, ids=ids)
def test_over_a_bridge_without_lint(world: World, bridge: Any, case: Case) -> None:
    """What a script prints or passes is never taken for what the bridge says."""
    source = world.text(case)
    result, error, told = world.attempt(source, bridge)
    gives_nothing_away(world, case, told)
    if case.category == "frames":
        assert error is not None or result == "real"
    elif case.ends == "fails":
        assert error is not None
    assert not world.attempt("1", bridge)[1], "the bridge lives on"


def test_frames_on_the_wire(world: World) -> None:
    """A host in any language: one answer for each request and nothing else, every line of it a frame."""
    frames = [c for c in CASES if c.category == "frames"]
    with peer(BRIDGE) as host:
        for number, case in enumerate(frames, 100):
            for prints in (False, True):
                host.send(script(number, world.text(case), prints=prints))
                while "method" in (frame := host.get()):
                    assert prints and frame["method"] == "print" and "id" not in frame, frame
                assert frame["id"] == number and frame.get("result", "real") == "real", frame
        host.send(request(1, "run", {"script": "1 + 1"}))
        assert host.get() == {"jsonrpc": "2.0", "id": 1, "result": 2}
        assert host.silent(0.1)
        assert host.close_input() == 0
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in host.raw)
