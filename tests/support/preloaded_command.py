"""A ``cleared`` for the path of a shell, whose every call is a ``Preloaded``: no start of Python, no imports."""

from __future__ import annotations

import marshal
import os
import select
import socket
import sys
import threading
from pathlib import Path
from typing import Any, Self

from preloaded import Preloaded

_CLIENT = """\
#!{python} -IS
import _socket, marshal, os, signal, sys
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect({path!r})
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
server.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
order = marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environ)))
server.sendall(len(order).to_bytes(4, "big") + order)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: server.sendall(bytes([number])))
answer = server.recv(4)
code = int.from_bytes(answer, "big", signed=True) if answer else 1
os._exit(code if code >= 0 else 128 - code)
"""


class PreloadedCommand:
    """``folder`` goes to the front of ``PATH``. As a context manager it answers there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "socket"))
        self._listener.listen()
        client = folder / "cleared"
        client.write_text(_CLIENT.format(python=sys.executable, path=str(folder / "socket")))
        client.chmod(0o755)

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept_calls, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept_calls(self) -> None:
        while True:
            try:
                caller = self._listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=_answer_call, args=(caller,), daemon=True).start()


def _answer_call(caller: socket.socket) -> None:
    with caller:
        streams = socket.recv_fds(caller, 1, 3)[1]
        try:
            argv, folder, environment = marshal.loads(_receive(caller, int.from_bytes(_receive(caller, 4), "big")))
            process: Preloaded[Any] = Preloaded(
                argv, stdin=streams[0], stdout=streams[1], stderr=streams[2], cwd=folder, env=environment
            )
        finally:
            for stream in streams:
                os.close(stream)
        while process.poll() is None:
            if select.select([caller, process._status], [], [])[0] == [caller]:
                number = caller.recv(1)
                if number:
                    process.send_signal(number[0])
                else:  # the caller was killed
                    process.kill()
                    process.wait()
        caller.sendall(process.returncode.to_bytes(4, "big", signed=True))


def _receive(caller: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += caller.recv(size - len(data))
    return data
