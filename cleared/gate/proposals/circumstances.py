"""What the words of a proposal's card rest on beside the change itself."""

from __future__ import annotations

from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import name_references
from cleared.gate.regression_tests import to_plain_json
from cleared.git import Snapshot
from cleared.trust.approval_record import canonical_digest
from cleared.workspace.settings.setting_keys import keys_declared, list_settings


def digest_circumstances(host: Host, snapshot: Snapshot) -> str:
    """Of the settings in force, but for secrets, and the names of what records are about: "5060 Office supplies, and
    ask you" holds as long as neither is another."""
    secrets = keys_declared("secret")
    settings = {key: value for key, value, _ in list_settings(host.config) if key not in secrets}
    return canonical_digest(to_plain_json([settings, name_references(host.layout, CommittedSource(snapshot))]))
