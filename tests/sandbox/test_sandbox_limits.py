"""A6: whatever a script does, it ends within its limit + 2 s, and the next run works."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace
from patience import PATIENCE
from sandbox_samples import Host, run

from cleared.sandbox.limits import Limits
from cleared.sandbox.monty import Sandbox
from cleared.sandbox.script_failure import ScriptError

SECONDS = 1.0
LIMITS = Limits(seconds=SECONDS, memory_bytes=64 << 20, max_calls=500, max_output_bytes=10_000)

BOMBS = [
    ("while True: pass", {"timeout"}),
    ("while True: tick()", {"calls"}),
    ("while True: undefined_call = tick", {"timeout", "calls"}),
    ("while True: print('x' * 100)", {"output"}),
    ("x = []\nwhile True: x.append('a' * 1000)", {"memory"}),
    ("x = 'a'\nwhile True: x = x + x", {"memory"}),
    ("x = 'a' * 10**11", {"memory"}),
    ("x = [0] * 10**10", {"memory"}),
    ("x = 10**10**8", {"timeout", "memory"}),
    ("x = 2\nwhile True: x = x * x", {"timeout", "memory"}),
    ("import re\nre.match('(a*)*(a*)*$', 'a' * 5000 + 'b')", {"timeout", "error", "ended"}),
    ("import re\nre.match('(.+)+\\\\1x', 'a' * 40)", {"timeout", "error", "ended"}),
    ("x = sum(range(10**12))", {"timeout"}),
    ("x = sorted(range(10**9))", {"timeout", "memory"}),
    ("def f(n): return f(n + 1)\nf(0)", {"recursion"}),
    ("list(range(10**7))", {"memory", "result"}),
    ("raise ValueError('x' * 10**7)", {"error"}),
    ("x = '%1000000000d' % 1", {"memory", "error", "timeout"}),
    ("f'{1:>10000000000}'", {"memory", "error"}),
    ("x = {}\nfor i in range(10**9): x[i] = i", {"timeout", "memory"}),
]


@pytest.mark.parametrize(("source", "kinds"), BOMBS, ids=[source[:40] for source, _ in BOMBS])
def test_A6_bombs(sandbox: Sandbox, source: str, kinds: set[str]) -> None:
    kind = "ended"  # some engines see through a hostile regex
    limits = LIMITS if "timeout" in kinds else replace(LIMITS, seconds=PATIENCE)
    try:
        run(sandbox, source, Host(tick=lambda: None), limits=limits)
    except ScriptError as error:
        kind = error.kind
        assert len(str(error)) < 5000
    assert kind in kinds
    assert run(sandbox, "1 + 1") == 2


def test_A6_the_deadline_covers_the_host(sandbox: Sandbox) -> None:
    host = Host(slow=lambda: time.sleep(0.3))
    with pytest.raises(ScriptError) as caught:
        run(sandbox, "while True: slow()", host, limits=LIMITS)
    assert caught.value.kind == "timeout" and "line 1" in caught.value.message


def test_A6_the_deadline_counts_host_and_script_together(sandbox: Sandbox) -> None:
    """A6: 0.8 s in the host leave 0.2 s, not another whole second."""
    host = Host(slow=lambda: time.sleep(0.8), after=lambda: None)
    with pytest.raises(ScriptError) as caught:
        run(sandbox, "slow()\nslow()\nafter()", host, limits=LIMITS)
    assert caught.value.kind == "timeout"
    assert "after" not in [name for name, *_ in host.calls]


def test_A6_a_deadline_of_the_caller(sandbox: Sandbox) -> None:
    with pytest.raises(ScriptError, match=r"within 0\.3"):
        run(sandbox, "while True: pass", deadline=100.3, monotonic=lambda: 100.0)
    with pytest.raises(ScriptError, match="no time left"):
        run(sandbox, "1", deadline=100.0, monotonic=lambda: 100.0)


def test_A6_output_up_to_the_limit_is_kept(sandbox: Sandbox) -> None:
    printed: list[str] = []
    with pytest.raises(ScriptError, match="printed more than 10000 bytes"):
        run(sandbox, "for i in range(10**6): print('é' * 50)", limits=LIMITS, on_print=printed.append)
    assert 9_990 <= len("".join(printed).encode()) <= 10_000
