"""The domains of this program, and those of other packages that the settings in force name; what they add to headers,
the records of all of them, and their files, which only runs and decisions may change.

Each that comes with it is named here and nowhere else, and imported when it is used. A further one is an entry point of
the group ``cleared.domains``, under its name, and switched on by that name in ``domains.plugins``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from functools import cache
from importlib import import_module
from typing import Any, Final, Literal, ParamSpec, TypeVar, cast

from cleared.base.errors import WorkspaceError
from cleared.base.file_source import FileSource
from cleared.base.safe_files import is_temporary
from cleared.base.short_text import join_words
from cleared.base.terminal import count_noun
from cleared.domains.domain import Domain, DraftDescription, ImportedFile, RunHost, Staged
from cleared.domains.record_audit import CHECKS
from cleared.domains.record_comparison import RecordComparison
from cleared.git import Snapshot
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


def _read_primitives(domain: Any) -> Any:
    """A plug-in's domain, with what its primitives take read: what is wrong with them is told of the plug-in, and not
    of the first script that calls one."""
    for name in getattr(domain, "primitive_modules", ()):
        for value in vars(import_module(name)).values():
            getattr(value, "takes", None)
    return domain


@cache_by_domains
def load_domains() -> tuple[Domain, ...]:
    """All domains."""
    found: list[Domain] = []
    for reference in BUILT_IN:
        module, _, name = reference.partition(":")
        found.append(getattr(import_module(module), name))
    for name in _plugins:
        plugin = PLUGINS.load(name, Domain, _read_primitives)
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


class ManagedFiles:
    """Tells the managed files of one workspace from others, as its folders are at this moment."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.audits = [domain.audit(layout) for domain in load_domains()]
        records = [folder for audit in self.audits for folder in audit.folders]
        self.audited_folders = [*records, layout.queue_dir, layout.logs_dir]
        """Where those lie of which each commit is explained; approvals are judged by their signatures."""
        self.folders = [*self.audited_folders, layout.approvals_dir]
        """Where they lie, relative to the workspace."""
        self.shared_files = {shared.path: shared for audit in self.audits for shared in audit.shared_files}
        """Those to which people add by hand, by their paths."""
        self._prefixes = tuple(f"{folder}/" for folder in self.folders)

    def has_path(self, path: str) -> bool:
        """Whether only runs and decisions may change what is at a relative path."""
        if is_temporary(path) or self.is_definition(path):  # nothing reads a temporary file that somebody has committed
            return False
        return self.lies_inside(path)

    def lies_inside(self, path: str) -> bool:
        """Whether a path is in one of their folders, or a record, whatever it is there."""
        return path.startswith(self._prefixes) or any(audit.is_record_file(path) for audit in self.audits)

    def is_definition(self, path: str) -> bool:
        """Whether a file counts as far as a person has approved its text: anybody may edit it."""
        return any(audit.is_definition(path) for audit in self.audits)

    def has_row_file(self, path: str) -> bool:
        """Whether the host itself might write this very path: a stray file there must not be overwritten."""
        return path.endswith((".csv", ".jsonl")) and self.has_path(path)

    def is_counted(self, path: str) -> bool:
        """Whether only runs and decisions add to a file, so that its rows are part of the state which they attest."""
        if is_temporary(path) or path in self.shared_files:
            return False
        return path.startswith(f"{self._layout.queue_dir}/") or any(a.is_record_file(path) for a in self.audits)

    def list_counted_roots(self, commit: Snapshot) -> set[str]:
        """The folders of a commit below which such files lie."""
        records = {folder for audit in self.audits for folder in (*audit.folders, *audit.list_roots(commit))}
        return {*records, self._layout.queue_dir}


Records = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""What the records of a domain are called (``entries``) → id → the record."""


@cache_by_domains
def load_comparisons() -> Mapping[str, RecordComparison]:
    """How records are compared, by what they are called."""
    return {domain.record_noun[1]: domain.comparison() for domain in load_domains()}


def name_references(layout: Layout, source: FileSource) -> dict[str, Mapping[str, str]]:
    """What the records of a domain are called → the names of what they may be about (see ``RecordComparison``)."""
    return {noun: each.name_references(layout, source) for noun, each in load_comparisons().items()}


def no_records() -> Records:
    """Of every domain none."""
    return {domain.record_noun[1]: {} for domain in load_domains()}


def describe_drafts(parts: Mapping[str, Staged]) -> dict[str, DraftDescription]:
    """What the draft would do, by what the records of each domain are called. ``parts``: by the domain's name."""
    return {
        domain.record_noun[1]: parts[domain.name].describe_draft() if domain.name in parts else DraftDescription()
        for domain in load_domains()
    }


def count_records(records: Mapping[str, Sized | int]) -> str:
    """How many there are, in words: ``2 entries``; of domains without any, only the first, where none has any.
    ``records``: what they are called → they, or their number."""
    domains, counts = load_domains(), []
    for domain in [each for each in domains if records.get(each.record_noun[1])] or domains[:1]:
        one, many = domain.record_noun
        found = records.get(many, 0)
        words = domain.describe_number(found.values()) if isinstance(found, Mapping) else ""
        counts.append(words or count_noun(found if isinstance(found, int) else len(found), one, many))
    return ", ".join(counts)
