"""A port on which only programs of this machine reach us, unless another address is asked for.

Nobody else may hold it, not even bound without listening: such a socket could answer once ours is gone, or be joined
with a caller. So it is bound without ``SO_REUSEADDR``, with which Linux lets two programs bind one port. For a minute
after a stop that refuses us, too: connections that we ended stay behind (TIME_WAIT). They are marked with
``SO_REUSEPORT`` while they are open: a socket with it gets past them, and past nothing that another user holds.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

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
_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_TIME_WAIT, _LISTENS = "06", "0A"


class _Port(socket.socket):
    """A listening socket. What it accepts is marked, so that nothing of it keeps our next start from the port."""

    def accept(self) -> tuple[socket.socket, Any]:
        """As any socket's."""
        connection, peer = super().accept()
        if sys.platform == "linux":
            with suppress(OSError):  # the other side has hung up
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        return connection, peer


class Listener(Struct, frozen=True):
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
    try:
        for address in addresses:
            try:
                sockets.append(_listen(address, port, waiting))
            except OSError as error:
                if address == _ADDRESS_6 and error.errno in _NO_IPV6:
                    continue
                raise _explain_refusal(address, port, error) from None
            port = sockets[0].getsockname()[1]
        _refuse_others(sockets, port)
    except ClearedError:
        Listener(tuple(sockets)).close()
        raise
    return Listener(tuple(sockets))


def _explain_refusal(address: str, port: int, error: OSError) -> ClearedError:
    cause = f"port {port} of {address} cannot be used: {describe_os_error(error)}"
    if error.errno != errno.EADDRINUSE:
        return UsageError(cause, remedy="Choose another: --port N.")
    ended = any(state == _TIME_WAIT for state, _ in _list_sockets(port))
    again = ", or begin again in a minute, as connections have just ended there" if ended else ""
    return BusyError(cause, remedy=f"Choose another: --port N{again}.")


def _listen(address: str, port: int, waiting: int) -> socket.socket:
    try:
        return _bind(address, port, waiting, past_ended=sys.platform != "linux")
    except OSError as error:
        if error.errno != errno.EADDRINUSE or all(state != _TIME_WAIT for state, _ in _list_sockets(port)):
            raise
    return _bind(address, port, waiting, past_ended=True)


def _bind(address: str, port: int, waiting: int, *, past_ended: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # With the protocol named: else asyncio leaves Nagle's algorithm on, and each answer may wait for 40 ms.
    listener = _Port(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if past_ended:
            # Elsewhere than on Linux, SO_REUSEADDR gets past ended connections, and past nothing that is bound there.
            option = socket.SO_REUSEPORT if sys.platform == "linux" else socket.SO_REUSEADDR
            listener.setsockopt(socket.SOL_SOCKET, option, 1)
        listener.bind((address, port))
        listener.listen(waiting)
    except OSError:
        listener.close()
        raise
    return listener


def _refuse_others(sockets: list[socket.socket], port: int) -> None:
    """Raises ``BusyError`` where somebody else listens on it too: another program of this user that shares its port."""
    if not any(each.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT) for each in sockets):
        return  # the kernel lets nobody share it
    own = {os.fstat(each.fileno()).st_ino for each in sockets}
    if any(state == _LISTENS and inode not in own for state, inode in _list_sockets(port)):
        raise _explain_refusal(sockets[0].getsockname()[0], port, OSError(errno.EADDRINUSE, "somebody listens there"))


def _list_sockets(port: int) -> Iterator[tuple[str, int]]:
    """State and inode of each TCP socket of this machine that has this port, as Linux tells; not those only bound."""
    for table in _TABLES:
        with suppress(OSError):
            for line in table.read_text().splitlines()[1:]:
                _, local, _, state, *rest = line.split()
                if int(local.rpartition(":")[2], 16) == port:
                    yield state, int(rest[5])
