"""The socket of ``cleared rpc --socket``: mode 0600, and only for processes of the same user."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final, Self, cast

from cleared.base.errors import BusyError, Place, UsageError, WorkspaceError
from cleared.sandbox.bridge.jsonrpc import SERVER_ERROR, Request, RpcError, encode_frame, error_frame, serve_lines

MAX_CONNECTIONS: Final = 32
_CLOSE_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.5
_SOL_LOCAL, _LOCAL_PEERCRED = 0, 1


class SocketServer:
    """Listens at ``path``; a thread for each connection. A context manager that closes and removes the socket.

    Raises ``BusyError`` where somebody listens there already, ``UsageError`` where something else lies there or the
    path cannot be a socket's. A socket nobody listens on is replaced.
    """

    def __init__(self, path: Path, handle: Callable[[Request], Any]) -> None:
        if not hasattr(socket, "AF_UNIX"):
            raise UsageError("this system has no Unix sockets", remedy="Use --stdio.")
        self._handle = handle
        self._path = path
        self._lock = threading.Lock()
        self._open: dict[socket.socket, threading.Thread] = {}
        _remove_stale_socket(path)
        self._listener = _open_listener(path)
        self._identity = _file_identity(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def accept_connections(self) -> None:
        """Accept until an exception (a signal's) ends it."""
        self._listener.settimeout(_POLL_SECONDS)
        while True:
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            connection.settimeout(None)
            self._start_connection(connection)

    def close(self) -> None:
        """Stop listening, let requests that are being answered end (for a few seconds), remove the socket."""
        self._listener.close()
        if _file_identity(self._path) == self._identity:
            with contextlib.suppress(OSError):
                self._path.unlink()
        with self._lock:
            open_now = dict(self._open)
        for connection in open_now:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
        for thread in open_now.values():
            thread.join(_CLOSE_SECONDS)

    def _start_connection(self, connection: socket.socket) -> None:
        if peer_uid(connection) != os.getuid():
            connection.close()
            return
        with self._lock:
            if len(self._open) < MAX_CONNECTIONS:
                thread = threading.Thread(
                    target=self._serve_connection, args=(connection,), name="cleared-rpc", daemon=True
                )
                self._open[connection] = thread
                thread.start()
                return
        data = {"type": "BusyError", "message": f"{MAX_CONNECTIONS} clients are connected already"}
        with contextlib.suppress(OSError):
            connection.sendall(encode_frame(error_frame(None, RpcError(SERVER_ERROR, data["message"], data))))
        connection.close()

    def _serve_connection(self, connection: socket.socket) -> None:
        try:
            with connection.makefile("rb") as source, connection.makefile("wb") as sink:
                serve_lines(cast(BinaryIO, source), cast(BinaryIO, sink), self._handle)
        except (OSError, ValueError):  # the client left in the middle of a line
            pass
        finally:
            with self._lock:
                self._open.pop(connection, None)
            connection.close()


def peer_uid(connection: socket.socket) -> int | None:
    """The user of the process at the other end, as the kernel knows it; None where it does not say."""
    try:
        if hasattr(socket, "SO_PEERCRED"):
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return int(struct.unpack("3i", credentials)[1])
        # macOS: struct xucred {version, uid, …}
        credentials = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 76)
        version, uid = struct.unpack_from("=II", credentials)
        return int(uid) if version == 0 else None
    except (OSError, struct.error):
        return None


def _remove_stale_socket(path: Path) -> None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    except OSError as e:
        raise WorkspaceError(f"the socket cannot be made: {e.strerror}", place=Place(str(path))) from None
    if not stat.S_ISSOCK(status.st_mode):
        raise UsageError(
            "something that is no socket lies there", place=Place(str(path)), remedy="Name another path, or move it."
        )
    if status.st_uid != os.getuid():
        raise UsageError("the socket is another user's", place=Place(str(path)), remedy="Name another path.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)  # whoever made it was killed
            return
        except FileNotFoundError:
            return
        except OSError:
            pass
    raise BusyError(
        "somebody serves on this socket already", place=Place(str(path)), remedy="Stop it, or name another path."
    )


def _open_listener(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(MAX_CONNECTIONS)
    except OSError as e:
        listener.close()
        reason = e.strerror or str(e)
        raise UsageError(
            f"the socket cannot be made: {reason}",
            place=Place(str(path)),
            remedy="Name a path of at most about 100 characters in a directory you can write to.",
        ) from None
    finally:
        os.umask(before)
    return listener


def _file_identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
