"""From where the server can be reached: this machine, unless a person asks for more and it is protected."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from cleared.base.errors import PolicyError, UsageError
from cleared.changes.host import Host
from cleared.gate.proposals.passkey_registration import read_passkeys
from cleared.trust.passkey_assertions import LOCAL
from cleared.web.passkey_invitations import has_invitation
from cleared.workspace.loopback_listener import ADDRESS

if TYPE_CHECKING:
    from cleared.web.http_server import TlsFiles

_HOST_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")


class Exposure(Struct, frozen=True):
    """``address``: to listen on. ``name``: under which other machines reach it. ``tls``: certificate and key.
    ``behind_proxy``: a proxy on the way speaks TLS."""

    address: str = ADDRESS
    name: str = ""
    tls: TlsFiles | None = None
    behind_proxy: bool = False

    @property
    def is_reachable(self) -> bool:
        """Whether other machines reach it."""
        return self.address != ADDRESS or self.behind_proxy

    @property
    def scheme(self) -> str:
        """What browsers speak."""
        return "https" if self.tls is not None or self.behind_proxy else "http"

    def make_url(self, port: int, hosts: Sequence[Host]) -> str:
        """Where browsers find it: by the address, which no name server and no other protocol leads elsewhere; by the
        name that passkeys need where one of these workspaces has any."""
        if self.behind_proxy:
            return f"https://{self.name}"
        local = LOCAL if any(has_registered_passkey(host) for host in hosts) else ADDRESS
        return f"{self.scheme}://{self.name or local}:{port}"

    def list_hosts(self, port: int) -> list[str]:
        """The values of ``Host`` that are answered."""
        named = [self.name, f"{self.name}:{port}"] if self.name else []
        return [*named, f"{LOCAL}:{port}", f"{ADDRESS}:{port}"]


def read_exposure(
    address: str | None, name: str | None, certificate: Path | None, key: Path | None, behind_proxy: bool
) -> Exposure:
    """What the options of the command ask for. Raises ``UsageError`` where they do not go together."""
    if (certificate is None) != (key is None):
        raise UsageError("a certificate and its key go together", remedy="Give both: --tls-cert FILE --tls-key FILE.")
    for each in (certificate, key):
        if each is not None and not each.is_file():
            raise UsageError(f"there is no file {each}", remedy="Give certificate and key as PEM files.")
    if certificate is not None and key is not None:
        from cleared.web.http_server import TlsFiles

        tls: TlsFiles | None = TlsFiles(certificate, key)
    else:
        tls = None
    found = Exposure(_read_address(address), (name or "").lower(), tls, behind_proxy)
    if found.name and not _HOST_NAME.fullmatch(found.name):
        raise UsageError(f"{found.name[:60]!r} is no name of a machine", remedy="Such as books.example.org.")
    if found.is_reachable and not found.name:
        raise UsageError(
            "other machines would reach this server by a name that it does not know",
            remedy="Say which: --name books.example.org.",
        )
    return found


def refuse_exposure(exposure: Exposure, hosts: Sequence[Host]) -> None:
    """Raises ``PolicyError`` where other machines would reach a server that is not protected enough."""
    if not exposure.is_reachable:
        return
    if exposure.tls is None and not exposure.behind_proxy:
        raise PolicyError(
            f"{exposure.address} can be reached from other machines, which could read and change what is sent",
            remedy="Give --tls-cert FILE and --tls-key FILE, or --behind-proxy where a proxy speaks TLS; or leave "
            "--bind out.",
        )
    for host in hosts:
        if not has_registered_passkey(host):
            raise PolicyError(
                f"a server that other machines reach needs a registered passkey, and {host.root} has none",
                remedy="Register one: cleared passkey add NAME --url ADDRESS, and start the server while that waits. "
                "Or serve this machine only: leave --bind and --behind-proxy out.",
            )


def has_registered_passkey(host: Host) -> bool:
    """Whether somebody has registered a passkey for these books, or is invited to do so now."""
    return bool(read_passkeys(host)) or has_invitation(host.root)


def _read_address(text: str | None) -> str:
    if text is None:
        return ADDRESS
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise UsageError(
            f"{text[:60]!r} is no address of this machine", remedy="An IPv4 address, such as 192.168.1.5 or 0.0.0.0."
        ) from None
