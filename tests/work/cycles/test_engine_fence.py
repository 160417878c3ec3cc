"""What an engine tries on what lies outside of its fence. With the fence switched off each attempt succeeds."""

from __future__ import annotations

import pytest
from fake_engine import FakeEngine, good
from fence_attack import ALWAYS, ATTACK, SENT_OUT, aimed_at, close_key, possible
from harness import Workspace

from cleared.processes import fences
from cleared.processes.confinement import landlock_abi
from cleared.processes.namespaces import OfferedNamespaces
from cleared.work.cycles import engine_process

pytestmark = [pytest.mark.skipif(not landlock_abi(), reason="this kernel has no Landlock"), pytest.mark.slow]


@pytest.mark.parametrize("fence", ["whole", "without namespaces", "on an older kernel", "off"])
def test_an_engine_reaches_nothing_outside(
    cyc: Workspace, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, fence: str
) -> None:
    """On an older kernel Landlock does not keep signals in, nor what truncates a file. Having the machine's network, it
    sees which sockets there are."""
    if fence in ("without namespaces", "on an older kernel"):
        monkeypatch.setattr(fences, "offered_namespaces", OfferedNamespaces)
    if fence == "on an older kernel":
        monkeypatch.setattr(fences, "landlock_abi", lambda: 2)
    (engine.folder / "attack.py").write_text(ATTACK)
    if fence == "off":
        monkeypatch.setattr(engine_process, "engine_fence", lambda *_: None)
    with aimed_at(cyc) as outside:
        engine.plan(good(run=[str(engine.folder / "attack.py"), *outside.argv(cyc)]))
        cyc(*engine.argv())
        close_key()
        found = possible(cyc.ok("cycle", "last").out)
        wanted = {"off": ALWAYS, "on an older kernel": SENT_OUT}.get(fence, set()) | {"names of sockets"}
        assert found >= wanted if fence == "off" else found == wanted, (found - wanted, wanted - found)
        assert outside.has_heard() is (fence == "off")
