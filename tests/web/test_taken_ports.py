"""``localhost`` is two addresses: whoever has one of them alone gets what is meant for us. Row I4."""

from __future__ import annotations

import os
import socket
import sys

import pytest
from harness import Workspace
from listening import find_free_port, hold_port, list_listening, list_loopback, take_port
from web_client import inner_server

from cleared.base.errors import BusyError
from cleared.workspace.loopback_listener import open_listener

COMMANDS = (
    ("server",),
    ("up", "--server"),
    ("loop", "serve"),
    ("mcp", "--http"),
)


@pytest.mark.parametrize("address", list_loopback())
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_i4_nothing_starts_where_another_program_has_half_of_localhost(
    ws: Workspace, command: tuple[str, ...], address: str
) -> None:
    """Row I4: browsers and clients try one address after the other; it could take links, codes and tokens."""
    with take_port(address) as taken:
        port = taken.getsockname()[1]
        done = ws.process(*command, "--port", str(port))
        assert done.code == 5 and f"port {port} of {address} cannot be used" in done.err and "--port N" in done.err
        assert "http://" not in done.err + done.out, "no link is printed"
        assert list_listening(port) == [address], "and nothing is left"


def test_i4_a_server_has_both_addresses_of_localhost(ws: Workspace) -> None:
    with inner_server(ws.root) as server:
        assert list_listening(server.port) == list_loopback()
        for address in list_loopback():
            with pytest.raises(OSError, match="in use"):
                take_port(address, server.port)


@pytest.mark.parametrize("option", [socket.SO_REUSEADDR, socket.SO_REUSEPORT], ids=["address", "port"])
@pytest.mark.parametrize("address", list_loopback())
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_i4_nothing_starts_beside_a_socket_that_only_holds_the_port(
    ws: Workspace, command: tuple[str, ...], address: str, option: int
) -> None:
    """Row I4: it does not listen yet; once the server has ended, it would, and would get what is meant for the next."""
    with hold_port(address, option) as held:
        port = held.getsockname()[1]
        done = ws.process(*command, "--port", str(port))
        assert done.code == 5 and f"port {port} of {address} cannot be used" in done.err and "--port N" in done.err
        assert "http://" not in done.err + done.out, "no link is printed"
        assert list_listening(port) == []


def end_connection(port: int, address: str) -> None:
    """Whoever listens on it ends a connection first, so that it stays behind for a minute."""
    with socket.create_connection((address, port)) as caller:
        caller.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        while caller.recv(4096):
            pass


@pytest.mark.skipif(sys.platform != "linux", reason="other systems leave no such connection in the way")
def test_a_server_starts_again_at_once_where_connections_have_just_ended(ws: Workspace) -> None:
    with inner_server(ws.root) as server:
        port = server.port
        for address in list_loopback():
            end_connection(port, address)
    with pytest.raises(OSError, match="in use"):
        take_port("127.0.0.1", port)  # nothing listens, and a connection is in the way
    with open_listener(port, 1) as again:
        assert list_listening(port) == list_loopback() and again.port == port
        with pytest.raises(BusyError):
            open_listener(port, 1)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root is another user at will")
@pytest.mark.parametrize("option", [socket.SO_REUSEADDR, socket.SO_REUSEPORT], ids=["address", "port"])
def test_i4_connections_that_have_ended_let_nobody_elses_socket_pass(option: int) -> None:
    """Row I4: what gets past ended connections gets past nothing that another user holds, or listens on."""
    port = find_free_port()
    with open_listener(port, 1) as before, socket.create_connection(("127.0.0.1", port)) as caller:
        before.sockets[0].accept()[0].close()
        caller.recv(1)
    if option == socket.SO_REUSEPORT:
        with hold_port("127.0.0.1", option, port, user=65534), pytest.raises(BusyError):
            open_listener(port, 1)
        with hold_port("127.0.0.1", option, port) as own:
            own.listen()
            with pytest.raises(BusyError, match="somebody listens"):
                open_listener(port, 1)
    else:
        with pytest.raises(OSError, match="in use"):
            hold_port("127.0.0.1", option, port, user=65534)
    open_listener(port, 1).close()
