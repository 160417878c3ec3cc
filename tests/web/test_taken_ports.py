"""``localhost`` is two addresses: whoever has one of them alone gets what is meant for us. Row I4."""

from __future__ import annotations

import pytest
from harness import Workspace
from listening import list_listening, list_loopback, take_port
from web_client import inner_server

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
