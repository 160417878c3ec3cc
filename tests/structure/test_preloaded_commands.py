"""Commands that are forked off one process: when that process ends, another takes its place."""

from __future__ import annotations

import os
import socket
import threading

import pytest
from preloaded import LARGEST_ORDER, Preloaded, run


def test_a_process_that_took_an_order_and_could_not_fork_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def take_and_end() -> None:
        with theirs:
            for number in socket.recv_fds(theirs, LARGEST_ORDER, 4)[1]:
                os.close(number)

    monkeypatch.setattr(Preloaded, "_fork_server", (os.getpid(), ours))
    threading.Thread(target=take_and_end, daemon=True).start()
    assert run(["--version"]).returncode == 0
    assert run(["--version"]).stdout.startswith(b"cleared")


def test_a_process_that_is_gone_is_replaced() -> None:
    assert run(["--version"]).returncode == 0
    Preloaded._server().shutdown(socket.SHUT_RDWR)
    assert run(["--version"]).returncode == 0
