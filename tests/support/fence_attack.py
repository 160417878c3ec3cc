"""What is tried from inside a fence on what lies outside of it, and what it aims at. Each attempt is a real one."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness import Workspace

from cleared.trust.keys import KEY, cleared_home

ATTACK = Path(__file__).with_name("fence_attempts.py").read_text()
ALWAYS = {
    "mode of key 0",
    "time of key 0",
    "mode of workspace 0",
    "mode of file outside 3",
    "size of a file outside 0",
    "read the key",
    "file outside",
    "keyring",
    "new shared memory",
    "shared memory",
    "message",
    "its limit",
    "its environ",
    "signal to it",
    "signal by a pipe",
    "datagram to a listener",
    "raw datagram",
    "socket",
    "abstract socket",
    "set-id file",
    "names of sockets",
    "server",
    "server at any port",
    "port",
    "multipath socket",
    "call that waits",
    "watch on a folder outside",
    "attribute outside",
    "attributes outside",
    "disks of the machine",
}
"""What anybody may do whom nothing holds, on any machine."""
SENT_OUT = {"signal to it", "signal to its group", "signal to its thread", "signal with a value"}
"""What is not kept inside without namespaces, and without Landlock's sixth ABI."""


class Outside:
    """What the attacks aim at, beside the key and the workspace: a folder, listeners, a process, and what is shared."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "victim").write_text("of somebody else")
        os.setxattr(folder / "victim", "user.known", b"of somebody else")
        self.name = f"cleared-{folder.name}"
        self.listeners = []
        self.heard = self._listen(socket.SOCK_DGRAM, str(folder / "heard"))
        self._listen(socket.SOCK_STREAM, str(folder / "stream"))
        self._listen(socket.SOCK_STREAM, f"\0{self.name}")
        self.stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
        self.libc = ctypes.CDLL(None)
        self.segment, self.queue = self.libc.shmget(0, 4096, 0o1600), self.libc.msgget(0, 0o1600)

    def _listen(self, kind: int, address: str) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, kind)
        made.bind(address)
        made.setblocking(False)
        if kind == socket.SOCK_STREAM:
            made.listen(8)
        self.listeners.append(made)
        return made

    def argv(self, ws: Workspace, readable: Path | None = None) -> list[str]:
        numbers = (self.stranger.pid, self.segment, self.queue)
        files = (cleared_home() / KEY, ws.root / "config.yaml", self.folder)
        return [*map(str, files), self.name, *map(str, numbers), *([str(readable)] if readable is not None else [])]

    def has_heard(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            return bool(self.heard.recv(4096))
        return False

    def close(self) -> None:
        self.stranger.kill()
        self.stranger.wait()
        self.libc.shmctl(self.segment, 0, 0)
        self.libc.msgctl(self.queue, 0, 0)
        for each in self.listeners:
            each.close()


_MODE_OF_NULL = 0o666
"""As every machine has it: what was read could be what another attack beside this one left."""


@contextlib.contextmanager
def aimed_at(ws: Workspace) -> Iterator[Outside]:
    """With a key, a listener and a stranger's process; what an attack changed is put right afterwards."""
    ws.config("sandbox.confine=off")
    ws.config("sandbox.confine=best")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # the address of a socket is short
        found = Outside(Path(folder))
        try:
            yield found
        finally:
            found.close()
            close_key()
            if Path(os.devnull).stat().st_mode & 0o7777 != _MODE_OF_NULL:
                Path(os.devnull).chmod(_MODE_OF_NULL)


def close_key() -> None:
    """Without which every command refuses."""
    key = cleared_home() / KEY
    key.chmod(0o600)
    os.chown(key, os.geteuid(), os.getegid())


def possible(text: str) -> set[str]:
    """The attempts that succeeded."""
    (tried,) = re.findall(r"tried ([0-9]+)", text)
    assert int(tried) > 150, text
    return {line.split("POSSIBLE ", 1)[1].strip() for line in text.splitlines() if "POSSIBLE " in line}
