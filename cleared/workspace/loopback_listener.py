"""A port on which only programs of this machine reach us, unless another address is asked for."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from typing import Final

from cleared.base.errors import BusyError, ClearedError, UsageError
from cleared.base.safe_files import describe_os_error

ADDRESS: Final = "127.0.0.1"
_ADDRESS_6: Final = "::1"
_ADDRESSES: Final = (ADDRESS, _ADDRESS_6)
"""``localhost`` is both, and browsers try the second first: whoever has it alone gets what was meant for us."""
_NO_IPV6: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""What a machine without IPv6 says. Nobody can listen there then, and only root can change it."""
_MAX_TRIES: Final = 20
"""Free ports that are tried: one may be free at one address only."""


@dataclass(frozen=True, slots=True)
class Listener:
    """The sockets of one port. A context manager: its end closes them."""

    sockets: tuple[socket.socket, ...]

    @property
    def port(self) -> int:
        """The port that was taken."""
        return int(self.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Listen no more."""
        for each in self.sockets:
            each.close()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_listener(port: int, waiting: int, address: str = ADDRESS) -> Listener:
    """Listen at both addresses of ``localhost``; ``port`` 0: a free one. ``waiting``: connections that may wait to be
    taken. ``address``: another address of this machine, which the caller has said may be reached, and no other then.

    Raises ``BusyError`` where the port is taken at one of them, ``UsageError`` where this user may not have it.
    """
    addresses = _ADDRESSES if address == ADDRESS else (address,)
    for _ in range(_MAX_TRIES - 1 if port == 0 else 0):
        try:
            return _listen_at_each(addresses, port, waiting)
        except BusyError:
            continue
    return _listen_at_each(addresses, port, waiting)


def _listen_at_each(addresses: tuple[str, ...], port: int, waiting: int) -> Listener:
    sockets: list[socket.socket] = []
    for address in addresses:
        try:
            sockets.append(_listen(address, port, waiting))
        except OSError as error:
            if address == _ADDRESS_6 and error.errno in _NO_IPV6:
                continue
            Listener(tuple(sockets)).close()
            kind: type[ClearedError] = BusyError if error.errno == errno.EADDRINUSE else UsageError
            raise kind(
                f"port {port} of {address} cannot be used: {describe_os_error(error)}",
                remedy="Choose another: --port N.",
            ) from None
        port = sockets[0].getsockname()[1]
    return Listener(tuple(sockets))


def _listen(address: str, port: int, waiting: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # With the protocol named: else asyncio leaves Nagle's algorithm on, and each answer may wait for 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(waiting)
    except OSError:
        listener.close()
        raise
    return listener
