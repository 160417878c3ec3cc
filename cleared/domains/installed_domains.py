"""The domains of this program, and those of other packages that the settings in force name; what they add to headers.

Each that comes with it is named here and nowhere else, and imported when it is used. A further one is an entry point of
the group ``cleared.domains``, under its name, and switched on by that name in ``domains.plugins``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Final, Literal, ParamSpec, TypeVar, cast

from cleared.base.errors import WorkspaceError
from cleared.base.file_source import FileSource
from cleared.base.short_text import join_words
from cleared.base.terminal import count_noun
from cleared.domains.domain import Domain, ImportedFile, RunHost
from cleared.domains.record_audit import CHECKS
from cleared.sandbox import header
from cleared.sandbox.finding import Finding
from cleared.sandbox.header import Header, HeaderKey
from cleared.workspace.location import Layout
from cleared.workspace.plugin_group import PluginGroup

BUILT_IN: Final = (
    "cleared.books.books_domain:BOOKS",
    "cleared.records.records_domain:RECORDS",
    "cleared.records.agent_state.state_domain:STATE",
)
"""``module:name`` of each, in the order in which references list them."""


PLUGINS: Final = PluginGroup("domain", "cleared.domains", "domains.plugins")

_P = ParamSpec("_P")
_T = TypeVar("_T")
_remembered: Final[list[Callable[[], None]]] = []
"""What forgets each table that was put together of the domains."""
_plugins: tuple[str, ...] = ()


def cache_by_domains(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """As ``cache``, of a table that is put together of what the domains say: it is made anew where there are others."""
    cached = cache(function)
    _remembered.append(cached.cache_clear)
    return cast("Callable[_P, _T]", cached)


class DomainTable(Mapping[str, _T]):
    """What the domains declare, by its name, for whoever asks at import or later: it is put together when it is read,
    as a workspace may name more domains than were known when this program's modules were imported."""

    def __init__(self, make: Callable[[], Mapping[str, _T]]) -> None:
        self._read = cache_by_domains(make)

    def __getitem__(self, name: str) -> _T:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


def use_plugins(names: Sequence[str]) -> WorkspaceError | None:
    """From now on the domains of this process are those of this program and these: the settings in force name them.

    The error where one is missing or wrong; then there are no plug-ins.
    """
    global _plugins
    wanted = tuple(dict.fromkeys(names))
    if wanted == _plugins:
        return None
    _plugins = wanted
    forget_domains()
    try:
        load_domains()
    except WorkspaceError as error:
        _plugins = ()
        return error
    return None


def forget_domains() -> None:
    """Put together anew what was put together of the domains."""
    for forget in _remembered:
        forget()


@cache_by_domains
def load_domains() -> tuple[Domain, ...]:
    """All domains."""
    found: list[Domain] = []
    for reference in BUILT_IN:
        module, _, name = reference.partition(":")
        found.append(getattr(import_module(module), name))
    for name in _plugins:
        plugin = PLUGINS.load(name, Domain)
        for other in found:
            if plugin.name == other.name or set(plugin.record_noun) & set(other.record_noun):
                raise PLUGINS.error(name, f"its name, or what its records are called, is that of {other.name}")
        found.append(plugin)
    return tuple(found)


def read_imported_files(source: FileSource, layout: Layout) -> list[ImportedFile]:
    """The files that were taken in up to a commit, by the records of all domains. Raises as theirs do."""
    return [file for domain in load_domains() for file in domain.read_imported_files(source, layout)]


def describe_number_of_records(host: RunHost) -> str:
    """How many records of each domain the last commit has, in words. Raises as ``Domain.count_records``."""
    counts = [(domain.count_records(host), *domain.record_noun) for domain in load_domains()]
    return join_words([count_noun(*each) for each in counts if each[0]]) or "no records"


def list_checks() -> dict[str, str]:
    """What must hold of the records, by the names of the checks: of each domain, then of all."""
    return {name: text for domain in load_domains() for name, text in domain.list_checks().items()} | CHECKS


@cache_by_domains
def load_header_keys() -> tuple[HeaderKey, ...]:
    """The keys of all domains."""
    return tuple(key for domain in load_domains() for key in domain.list_header_keys())


def parse_header(
    source: str, file: str, *, kind: Literal["agent", "script"] = "agent"
) -> tuple[Header | None, list[Finding]]:
    """As ``sandbox.header.parse_header``, which knows no domain."""
    return header.parse_header(source, file, kind=kind, own_keys=load_header_keys())


def describe_own_values(found: Header) -> list[str]:
    """What a header says under keys of domains, in words."""
    return [key.describe(found.own_values[key.name]) for key in load_header_keys() if key.name in found.own_values]
