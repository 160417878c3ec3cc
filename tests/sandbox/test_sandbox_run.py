"""A5, A7, A8 and how a run behaves."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from sandbox_samples import FILE, NOW, Host, run, worker_pids

from cleared.base.errors import BusyError, ExitCode, Place, PolicyError, UsageError, WorkspaceError
from cleared.sandbox import worker_pool
from cleared.sandbox.limits import Limits
from cleared.sandbox.monty import Sandbox
from cleared.sandbox.script_failure import HostCallFailed, ScriptError
from cleared.sandbox.worker_pool import confinement_level

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "source",
    [
        "open('/etc/passwd').read()",
        "open('/tmp/x', 'w').write('x')",
        "from pathlib import Path\nPath('/etc/passwd').read_text()",
        "from pathlib import Path\n[str(x) for x in Path('/').iterdir()]",
        "import os\nos.environ['HOME']",
        "import os\nos.getenv('PATH') + ''",
        "import os\nos.listdir('/')",
        "import os\nos.system('id')",
        "import os\nos.kill(1, 0)",
        "import os\nos.fork()",
        "import socket\nsocket.socket()",
        "import subprocess\nsubprocess.run(['id'])",
        "import urllib.request\nurllib.request.urlopen('http://localhost')",
        "import ctypes",
        "import multiprocessing",
        "__import__('os').environ",
        "eval(\"open('/etc/passwd').read()\")",
        "exec(\"open('/etc/passwd').read()\")",
        "().__class__.__base__.__subclasses__()",
        "(lambda: 0).__globals__",
        "'{0.__class__.__mro__}'.format(1) + 1",
    ],
)
def test_A5_isolation_without_lint(sandbox: Sandbox, source: str) -> None:
    """A5: files, environment, network, other processes: all fail; nothing reaches the host's functions."""
    host = Host()
    with pytest.raises(ScriptError) as caught:
        run(sandbox, source, host)
    assert caught.value.kind == "error"
    assert "root:" not in str(caught.value) and host.calls == []


def test_A7_fifty_thousand_calls(sandbox: Sandbox) -> None:
    host = Host(ctx_log=lambda message: None)
    source = "for i in range(50000):\n    ctx_log('x')\n'done'"
    assert run(sandbox, source, host, limits=Limits(seconds=60)) == "done"
    assert len(host.calls) == 50_000


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_A8_worker_killed_between_calls() -> None:
    """A8: the run fails cleanly, the next one passes."""
    with Sandbox() as sandbox:
        host = Host(die=lambda: [os.kill(pid, signal.SIGKILL) for pid in worker_pids()])
        with pytest.raises(ScriptError) as caught:
            run(sandbox, "die()\n1", host)
        assert caught.value.kind == "crash"
        assert run(sandbox, "1 + 1") == 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_A8_worker_killed_while_computing_or_idle() -> None:
    with Sandbox(confine="require" if confinement_level().is_full else "best") as sandbox:
        run(sandbox, "1")
        threading.Timer(0.3, lambda: [os.kill(pid, signal.SIGKILL) for pid in worker_pids()]).start()
        with pytest.raises(ScriptError) as caught:
            run(sandbox, "while True: pass")
        assert caught.value.kind == "crash"
        run(sandbox, "1")
        level = sandbox.level
        for pid in worker_pids():
            os.kill(pid, signal.SIGKILL)
        assert run(sandbox, "1 + 1") == 2
        assert sandbox.level == level, "the replacement is confined too"


def test_unknown_names_have_a_hint(sandbox: Sandbox) -> None:
    host = Host(ctx_log=lambda message: None)
    for source in ("ctx_lgo('x')", "f = ctx_lgo"):
        with pytest.raises(ScriptError) as caught:
            run(sandbox, source, host)
        assert caught.value.type == "NameError" and caught.value.remedy == "Did you mean ctx_log?"
    with pytest.raises(ScriptError, match="NameError"):
        run(sandbox, "Decimal('1')", host)


def test_a_primitive_as_a_value(sandbox: Sandbox) -> None:
    host = Host(ctx_log=lambda message: message)
    assert run(sandbox, "f = ctx_log\n[f('a'), [g('b') for g in [f]]]", host) == ["a", ["b"]]
    assert [name for name, *_ in host.calls] == ["ctx_log"] * 2


def test_a_primitive_in_map_has_a_remedy(sandbox: Sandbox) -> None:
    with pytest.raises(ScriptError) as caught:
        run(sandbox, "list(map(ctx_log, [1]))", Host(ctx_log=lambda message: None))
    assert "comprehension" in str(caught.value)


def test_a_refused_call_ends_the_run_whatever_the_script_does() -> None:
    def refuse() -> None:
        raise PolicyError("not now", place=Place(field="amount"), remedy="Wait.")

    host = Host(refuse=refuse, after=lambda: None)
    with Sandbox() as sandbox:
        with pytest.raises(HostCallFailed) as caught:
            run(sandbox, "try:\n    refuse()\nexcept BaseException:\n    after()\nwhile True: pass", host)
        failed = caught.value
        assert [name for name, *_ in host.calls] == ["refuse"]
        assert failed.exit_code == ExitCode.REFUSED
        assert failed.place == Place(FILE, 2, 5, "amount") and failed.remedy == "Wait."
        assert run(sandbox, "1") == 1


def test_values_cross_exactly(sandbox: Sandbox) -> None:
    values = [Decimal("1.10"), date(2025, 1, 2), datetime(2025, 1, 2, 3, 4), 2**100, None, True, "é", 0.1]
    host = Host(echo=lambda value: value)
    assert run(sandbox, "[echo(x) for x in values]", host, inputs={"values": values}) == values
    kinds = [type(value) for _, (value,), _, _ in host.calls]  # type: ignore[misc]
    assert kinds == [type(value) for value in values]


def test_clock_zone_and_seed_are_given(sandbox: Sandbox) -> None:
    source = "import datetime, random, time\nx = [str(datetime.datetime.now()), time.time(), random.random()]\nx"
    first = run(sandbox, source, timezone="Europe/Berlin")
    assert isinstance(first, list) and first[:2] == ["2025-02-01 07:00:00", NOW.timestamp()]
    assert run(sandbox, source, timezone="Europe/Berlin") == first
    assert run(sandbox, source, seed="other") != first
    with pytest.raises(WorkspaceError, match="Mars"):
        run(sandbox, "1", timezone="Mars/Base")
    with pytest.raises(UsageError):
        run(sandbox, "1", now=datetime(2025, 1, 1))


def test_nothing_is_left_over(sandbox: Sandbox) -> None:
    run(sandbox, "x = 5")
    with pytest.raises(ScriptError, match="'x' is not defined"):
        run(sandbox, "x")


def test_print_is_captured(sandbox: Sandbox) -> None:
    printed: list[str] = []
    run(sandbox, "print('é', 1)\nprint('b')", on_print=printed.append)
    assert "".join(printed) == "é 1\nb\n"

    def fail(text: str) -> None:
        raise OSError("the log is full")

    with pytest.raises(OSError, match="log is full"):
        run(sandbox, "print('x')", on_print=fail)


def test_nested_and_parallel_runs() -> None:
    with Sandbox() as sandbox:
        host = Host()
        host.functions["nest"] = lambda n: n if n == 0 else run(sandbox, f"nest({n - 1}) + 1", host)
        assert run(sandbox, "nest(5)", host) == 5
        with pytest.raises(HostCallFailed) as caught:
            run(sandbox, "nest(40)", host)
        deepest: BaseException = caught.value
        while isinstance(deepest, HostCallFailed):
            deepest = deepest.original
        assert isinstance(deepest, BusyError)

        results: list[object] = []
        threads = [threading.Thread(target=lambda: results.append(run(sandbox, "sum(range(9))"))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [36] * 8


def test_an_unreadable_script_never_starts_a_worker(sandbox: Sandbox) -> None:
    for source in ("x = (1 +", "(" * 100_000, "\0"):
        with pytest.raises(ScriptError) as caught:
            run(sandbox, source)
        assert caught.value.kind == "syntax"
    with pytest.raises(ScriptError) as caught:
        run(sandbox, "if 1:\n    x = 1\n    del x")
    assert (caught.value.kind, caught.value.place) == ("syntax", Place(FILE, 3, 5))


@pytest.mark.parametrize("body", ["while True: pass", "for i in range(10**9): host()"])
def test_ctrl_c_stops_a_script(body: str) -> None:
    program = (
        "import sys; sys.path.insert(0, 'tests/sandbox')\n"
        "from sandbox_samples import Host, run\n"
        "from cleared.sandbox.limits import Limits\n"
        "from cleared.sandbox.monty import Sandbox\n"
        "host = Host(host=lambda: None, ready=lambda: print('ready', flush=True))\n"
        "try:\n"
        f"    run(Sandbox(), 'ready()\\n{body}', host, limits=Limits(seconds=600))\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopped\n", "by Ctrl-C, not by its limit"
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    "source",
    ["print(1)", "print(1)\nwhile True: pass", "try:\n    print(1)\nexcept BaseException:\n    x = 1"],
)
def test_ctrl_c_while_a_script_prints_is_no_failure_of_it(sandbox: Sandbox, source: str) -> None:
    """Python raises it in whatever of it runs; in a print, the client gives it to the script, which may catch it."""

    def press_ctrl_c(_: str) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(sandbox, source, on_print=press_ctrl_c)
    with pytest.raises(ScriptError) as caught:
        run(sandbox, "raise KeyboardInterrupt('of its own')")
    assert caught.value.type == "KeyboardInterrupt"
    assert run(sandbox, "1 + 1") == 2


@pytest.mark.parametrize("is_dropped", [True, False])
def test_ctrl_c_while_a_worker_starts_is_heard(monkeypatch: pytest.MonkeyPatch, is_dropped: bool) -> None:
    """The client drops what Python raises in it (``is_dropped``); the worker itself is to hear nothing."""
    start = worker_pool.run_restricted

    def press_ctrl_c(*given: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        start(*given)

    def drop_ctrl_c(*given: Any) -> Any:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return take_worker(*given)

    take_worker = worker_pool.WorkerPool.take_worker
    with Sandbox() as sandbox:
        if is_dropped:
            monkeypatch.setattr(worker_pool.WorkerPool, "take_worker", drop_ctrl_c)
        else:
            monkeypatch.setattr(worker_pool, "run_restricted", press_ctrl_c)
        with pytest.raises(KeyboardInterrupt):
            run(sandbox, "1")
        monkeypatch.undo()
        assert run(sandbox, "1 + 1") == 2
        for pid in worker_pids():
            held = re.search(r"SigBlk:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
            assert held is not None and int(held[1], 16) & 1 << signal.SIGINT - 1


def test_importing_the_package_stays_cheap() -> None:
    program = (
        "import sys, cleared.sandbox.monty, cleared.sandbox.header, cleared.sandbox.construct_lint\n"
        "print([m for m in ('pydantic_monty', 'croniter', 'zoneinfo') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
