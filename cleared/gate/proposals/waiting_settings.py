"""The protected settings in ``config.yaml`` that wait for approval, each with who changed it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from cleared.base.errors import UsageError
from cleared.changes.decisions.shown_cards import digest_shown
from cleared.changes.host import Host
from cleared.git import Repository, Snapshot, history, parse_parents
from cleared.trust.policy_in_force import SettingsInForce, settings_in_force
from cleared.workspace.settings.config_file import load_config_file
from cleared.workspace.settings.loading import ConfigError, load_config
from cleared.workspace.settings.protected_settings import compare_settings, protected_settings_of

SHOWN: Final = "settings"
"""As ``changes.decisions.shown_cards`` names them."""
_MOST_COMMITS: Final = 200


class WaitingSetting(Struct, frozen=True):
    """``before``: as approved; ``after``: as the file has it; None: not set, nor shipped. ``commit``: short id
    of the commit that changed it last, empty where only the working copy has it so; ``by``: its author, as it says
    itself."""

    key: str
    before: Any
    after: Any
    commit: str = ""
    by: str = ""


def approved_settings(host: Host) -> SettingsInForce:
    """What counts now; where a commit was killed, once its files are in their places."""
    host.repair_interrupted_commit()
    return settings_in_force(host.root, host.config)


def list_waiting_settings(host: Host, keys: Sequence[str] = ()) -> list[WaitingSetting]:
    """Those that wait, or only ``keys`` of them. Raises ``UsageError`` for a key that does not wait."""
    approved = approved_settings(host).approved or {}
    wanted = protected_settings_of(load_config_file(host.root / host.layout.config_file))
    changes = select_changes(compare_settings(approved, wanted), keys, {*approved, *wanted})
    with host.open_for_reading() as repo:
        origins = _find_origins(host, repo, wanted, [key for key, _, _ in changes])
    return [WaitingSetting(*change, *origins.get(change[0], ("", ""))) for change in changes]


def select_changes(
    changes: Sequence[tuple[str, Any, Any]], keys: Sequence[str], known: Collection[str]
) -> list[tuple[str, Any, Any]]:
    """The changes of these keys, or all where none is named; one that is approved as it is has none.

    ``known``: the keys that are approved or in the file. Raises ``UsageError`` for another.
    """
    waiting = {key for key, _, _ in changes}
    if unknown := [key for key in keys if key not in waiting and key not in known]:
        raise UsageError(
            f"{unknown[0][:80]} does not wait for approval",
            remedy=f"What does: {', '.join(sorted(waiting)) or 'nothing'}.",
        )
    return [change for change in changes if not keys or change[0] in keys]


def digest_changes(changes: Iterable[tuple[str, Any, Any]]) -> str:
    """The digest of what is shown of them."""
    return digest_shown([list(change) for change in changes])


def _find_origins(
    host: Host, repo: Repository, wanted: Mapping[str, Any], keys: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """Key → the commit that gave it the wanted value last, and that commit's author; none for keys that are committed
    otherwise, or not at all."""
    path = host.layout.config_file
    committed = _settings_of(Snapshot(repo, repo.read_head()), path)
    waiting = {key for key in keys if committed is not None and committed.get(key) == wanted.get(key)}
    origins: dict[str, tuple[str, str]] = {}
    for commit in history.read_log(host.root, _MOST_COMMITS, [path]) if waiting else ():
        changed = _find_changed(repo, path, commit.id, waiting)
        origins |= dict.fromkeys(changed, (commit.short, f"{commit.author} <{commit.email}>"))
        waiting -= changed
        if not waiting:
            break
    return origins | dict.fromkeys(waiting, ("?", "an older commit"))


def _find_changed(repo: Repository, path: str, commit: str, keys: set[str]) -> set[str]:
    """Which settings the commit gave another value than each of its parents has, or cannot be compared."""
    new = _settings_of(Snapshot(repo, commit), path)
    parents = parse_parents(repo.objects.read_object(commit)[1])
    olds = [_settings_of(Snapshot(repo, parent), path) for parent in parents]
    if new is None:
        return set(keys)
    return {key for key in keys if all(old is None or old.get(key) != new.get(key) for old in olds)}


def _settings_of(snapshot: Snapshot, path: str) -> dict[str, Any] | None:
    try:
        return protected_settings_of(load_config((snapshot.read_file(path) or b"").decode("utf-8-sig")))
    except (ConfigError, UnicodeDecodeError):
        return None


def group_by_commit(waiting: Iterable[WaitingSetting]) -> Iterator[list[WaitingSetting]]:
    """Those of the working copy, then those of each commit."""
    groups: dict[str, list[WaitingSetting]] = {}
    for each in sorted(waiting, key=lambda one: (one.commit, one.key)):
        groups.setdefault(each.commit, []).append(each)
    yield from groups.values()
