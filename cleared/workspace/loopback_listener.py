"""A listening socket that only programs of this machine reach, unless another address is asked for."""

from __future__ import annotations

import errno
import socket
from typing import Final

from cleared.base.errors import BusyError, ClearedError, UsageError
from cleared.base.safe_files import describe_os_error

ADDRESS: Final = "127.0.0.1"


def open_listener(port: int, waiting: int, address: str = ADDRESS) -> socket.socket:
    """A socket that listens on loopback; ``port`` 0: a free one. ``waiting``: connections that may wait to be taken.
    ``address``: another address of this machine, which the caller has said may be reached.

    Raises ``BusyError`` where the port is taken, ``UsageError`` where this user may not have it.
    """
    # With the protocol named: else asyncio leaves Nagle's algorithm on, and each answer may wait for 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(waiting)
    except OSError as error:
        listener.close()
        kind: type[ClearedError] = BusyError if error.errno == errno.EADDRINUSE else UsageError
        raise kind(
            f"port {port} of {address} cannot be used: {describe_os_error(error)}", remedy="Choose another: --port N."
        ) from None
    return listener
