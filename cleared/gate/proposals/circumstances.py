"""What the words of a proposal's card rest on beside the change itself."""

from __future__ import annotations

from collections.abc import Iterable

from cleared.base.json_values import to_plain_json
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import name_references
from cleared.gate.candidate import Change
from cleared.runs.approved_scripts import Scripts
from cleared.trust.approval_record import canonical_digest, digest_of
from cleared.workspace.settings.protected_settings import read_public_settings


def digest_circumstances(host: Host, scripts: Scripts, changes: Iterable[Change], examined: Iterable[str]) -> str:
    """Of the settings in force, but for secrets, the names of what records are about, the approved texts of the
    ``examined`` scripts and of all shared ones, and how the versions that ``changes`` makes live stand. "5060 Office
    supplies, and ask you" holds as long as all of them are as they were."""
    snapshot, approvals, settings = scripts.snapshot, scripts.approvals, read_public_settings(host.config)
    shared = [path for path in snapshot.list_entries(host.layout.scripts_dir) if path.endswith(".py")]
    texts = {path: approvals.approved_version(path)[0] for path in sorted({*examined, *shared})}
    digests = {path: digest_of(text) if text is not None else "" for path, text in texts.items()}
    made_live = [(each.path, each.new) for each in changes if each.kind in ("agent", "script") and each.new is not None]
    standings = {path: approvals.verify_version(path, text).reason for path, text in made_live}
    names = name_references(host.layout, CommittedSource(snapshot))
    return canonical_digest(to_plain_json([settings, names, digests, standings]))
