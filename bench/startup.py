"""What a command costs before it does anything."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import Result, Side, compare
from bench.workspaces import chase, copy, host, place, workspace, write_and_commit

CLEARED = str(Path(sys.executable).with_name("cleared"))


def _process(*argv: str, cwd: Callable[[], Path]) -> Side:
    def side() -> Callable[[], object]:
        folder = cwd()

        def act() -> None:
            subprocess.run(argv, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        return act

    return side


def help_(quick: bool) -> Result:
    """``cleared --help`` as installed."""
    return compare(
        "cleared --help / import typer",
        _process(CLEARED, "--help", cwd=_nowhere),
        _process(sys.executable, "-c", "import typer", cwd=_nowhere),
        1.2,
        5 if quick else 25,
    )


def cold_run(quick: bool) -> Result:
    """The whole command, six rows, a new process each time; file caches warm."""
    template = _begun_workspace()
    imports = "import typer, pydantic_monty, git"
    return compare(
        "cleared agent run ingest, 6 rows, cold / import typer, pydantic_monty, git",
        _process(CLEARED, "agent", "run", "ingest", cwd=lambda: copy(template)),
        _process(sys.executable, "-c", imports, cwd=_nowhere),
        1.3,
        5 if quick else 21,
    )


def cold_floor(quick: bool) -> Result:
    """The same, against what no run can do without: the sandbox's client and one commit of the files it writes."""
    template = _begun_workspace()
    done, names = _finish_run(template)
    files = {name: (done / name).read_bytes() for name in names}

    def floor() -> Callable[[], object]:
        root = copy(template)

        def act() -> None:
            subprocess.run([sys.executable, "-c", "import pydantic_monty"], check=True)
            write_and_commit(root, files)

        return act

    return compare(
        "cleared agent run ingest, 6 rows, cold / import pydantic_monty + git add + git commit",
        _process(CLEARED, "agent", "run", "ingest", cwd=lambda: copy(template)),
        floor,
        1.5,
        5 if quick else 21,
    )


def cold_least(quick: bool) -> Result:
    """The same, against a program that does the least possible: ``least_run``."""
    template = _begun_workspace()
    done, names = _finish_run(template)
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); from bench.least_run import run_least; "
    )

    def least() -> Callable[[], object]:
        argv = [sys.executable, "-c", f"{code}run_least(*sys.argv[1:])", str(done), str(copy(template)), *names]
        return lambda: subprocess.run(argv, check=True)

    return compare(
        "cleared agent run ingest, 6 rows, cold / the least program: worker, script, the same files made durable",
        _process(CLEARED, "agent", "run", "ingest", cwd=lambda: copy(template)),
        least,
        1.5,
        5 if quick else 21,
    )


def _begun_workspace() -> Path:
    """A workspace with a bank file, in which something was written before: as all but the first run find it."""
    root = workspace(files={"bank.csv": chase(6)})
    with host(root).open_for_writing("bench"):
        return root


def _finish_run(template: Path) -> tuple[Path, list[str]]:
    """A copy after a run of ``ingest``, and the names of the files that its commit has."""
    done = copy(template)
    subprocess.run([CLEARED, "agent", "run", "ingest"], cwd=done, check=True, capture_output=True)
    shown = subprocess.run(["git", "show", "--name-only", "--format="], cwd=done, check=True, capture_output=True)
    return done, [name for name in shown.stdout.decode().split() if (done / name).exists()]


def bridge_start(quick: bool) -> Result:
    """From the start of ``cleared bridge`` to the result of a first script."""
    return compare(
        "cleared bridge, start to first result / import pydantic_monty",
        lambda: _bridge_once,
        _process(sys.executable, "-c", "import pydantic_monty", cwd=_nowhere),
        2,
        5 if quick else 25,
    )


def _bridge_once() -> None:
    with opened_bridge() as (ask, _):
        assert ask({"script": "1"}) == 1


@contextmanager
def opened_bridge() -> Iterator[tuple[Callable[[dict[str, object]], object], int]]:
    """A bridge process, which runs what it is asked to, with 1 for each of its calls; and its process id."""
    pipe, numbers = subprocess.PIPE, itertools.count(1)
    with subprocess.Popen([CLEARED, "bridge"], stdin=pipe, stdout=pipe) as process:
        source, sink = process.stdout, process.stdin
        assert source is not None and sink is not None

        def ask(params: dict[str, object]) -> object:
            frame = {"jsonrpc": "2.0", "id": next(numbers), "method": "run", "params": params}
            sink.write(json.dumps(frame).encode() + b"\n")
            sink.flush()
            while "method" in (message := json.loads(source.readline())):
                sink.write(b'{"jsonrpc":"2.0","id":"%s","result":1}\n' % message["id"].encode())
                sink.flush()
            return message["result"]

        yield ask, process.pid
        sink.close()


def mcp_start(quick: bool) -> Result:
    """From the start of ``cleared mcp`` to the answer to a client's first call."""
    root = workspace()
    return compare(
        "cleared mcp, start to first answer / import mcp",
        lambda: lambda: _ask_mcp(root),
        _process(sys.executable, "-c", "import mcp", cwd=_nowhere),
        1.5,
        5 if quick else 15,
    )


def _ask_mcp(root: Path) -> None:
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    messages: list[dict[str, object]] = [
        {"id": 0, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": {"name": "agent_list", "arguments": {}}},
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen([CLEARED, "mcp"], cwd=root, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None and process.stdout is not None
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        assert "result" in json.loads(process.stdout.readline())
        process.kill()  # how it ends is no part of its start


def _nowhere() -> Path:
    folder = place()
    os.mkdir(folder)
    return folder
