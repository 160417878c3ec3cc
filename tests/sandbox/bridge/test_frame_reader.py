"""SWIFT: who reads a bridge's input, and what it makes of any pieces."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import PATIENCE
from peers import BRIDGE, Peer, peer, result, script

from cleared.sandbox.bridge import frame_reader, jsonrpc
from cleared.sandbox.bridge.frame_reader import FrameReader
from cleared.sandbox.bridge.jsonrpc import RpcError, read_line


@pytest.fixture
def bridge() -> Iterator[Peer]:
    """A bridge whose one script reads its replies itself, and waits for the second of them."""
    with peer(BRIDGE, stderr=subprocess.PIPE) as found:
        found.send(script(1, "f()\nf(2)", "f", limits={"seconds": 3.0}))
        found.send(result(found.get()["id"], None))
        yield found


def test_a_script_that_reads_hands_over_what_is_not_its_own(bridge: Peer) -> None:
    """SWIFT: another script, half lines, a lone batch, a late reply: all as if the bridge read."""
    waiting = bridge.get()["id"]
    bridge.send(script(2, "f(3) + 1", "f"))
    call = bridge.get()
    bridge.write(b'\n{"jsonrpc":"2.0","id":"%s",' % call["id"].encode())
    bridge.write(b'"result":4}\n[{"jsonrpc":"2.0","id":9,"method":"run","params":["1"]}]\n')
    assert sorted([str(bridge.get()), str(bridge.get())]) == sorted([str(result(2, 5)), str([result(9, 1)])])
    bridge.send(result("b0", "nobody's"), result(waiting, 7))
    assert bridge.get() == result(1, 7)
    assert bridge.ask("run", {"script": "2"}, 1)["result"] == 2


def test_a_script_that_reads_ends_at_its_deadline(bridge: Peer) -> None:
    """SWIFT: half a reply does not hold it, and its other half is no frame."""
    call = bridge.get()
    bridge.write(b'{"jsonrpc":"2.0","id":"%s",' % call["id"].encode())
    assert bridge.get()["error"]["data"]["kind"] == "timeout"
    bridge.write(b'"result":1}\n')
    assert bridge.ask("run", {"script": "2"}, 2)["result"] == 2


def test_a_script_that_computes_leaves_the_reading_to_others() -> None:
    """SWIFT: after a call of its own."""
    with peer(BRIDGE) as bridge:
        bridge.send(script(1, "f()\nf()\nwhile True:\n    pass", "f", limits={"seconds": 60}))
        for _ in range(2):
            bridge.send(result(bridge.get()["id"], None))
        assert bridge.ask("run", {"script": "2"}, 2)["result"] == 2
        bridge.send({"jsonrpc": "2.0", "method": "shutdown"})
        assert bridge.process.wait(PATIENCE) == 0


@pytest.mark.parametrize("end", ["shutdown", "closed", "SIGTERM"])
def test_a_bridge_ends_while_a_script_reads(bridge: Peer, end: str) -> None:
    """SWIFT: whoever hears of it."""
    bridge.get()
    if end == "closed":
        assert bridge.close_input() == 0
        assert "left" in bridge.get()["error"]["message"]
        return
    if end == "shutdown":
        bridge.send({"jsonrpc": "2.0", "method": "shutdown"})
    else:
        bridge.process.send_signal(signal.SIGTERM)
    assert bridge.process.wait(PATIENCE) == 0


PIECES = st.lists(
    st.sampled_from([b"{", b"\n", b" \r\n", b"xy", b"z" * 20, b"a\nb", b"c\n", b"\n" * 3, b"q" * 15 + b"\n"]),
    max_size=12,
)


@given(PIECES)
@settings(max_examples=100, deadline=None)
def test_pieces_become_the_lines_that_they_are_together(pieces: list[bytes]) -> None:
    """SWIFT: as reading the whole stream finds them, with those that are too long."""

    def every(read: Callable[[], bytes | None]) -> Iterator[bytes | None]:
        while True:
            try:
                line = read()
            except RpcError:
                line = None
            else:
                if line is None:
                    return
            yield line

    source, sink = os.pipe()
    with pytest.MonkeyPatch.context() as patched, os.fdopen(source, "rb", closefd=True) as stream:
        for module in (jsonrpc, frame_reader):
            patched.setattr(module, "MAX_LINE", 16)
        reader = FrameReader(stream)
        found: list[bytes | None] = []
        for piece in pieces:
            os.write(sink, piece)
            with contextlib.suppress(TimeoutError):
                found.extend(every(lambda: reader.read_line(0.0)))
        os.close(sink)
        found.extend(every(reader.read_line))
        reader.close()
        whole = io.BytesIO(b"".join(pieces))
        assert found == list(every(lambda: read_line(whole)))
