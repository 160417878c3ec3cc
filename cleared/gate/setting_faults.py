"""Settings that cannot hold beside the records of a domain, judged before they count."""

from __future__ import annotations

from cleared.base.errors import ClearedError
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import load_domains
from cleared.git import Snapshot
from cleared.workspace.location import Layout
from cleared.workspace.settings.model import Config


def find_setting_faults(layout: Layout, config: Config, commit: Snapshot) -> dict[str, ClearedError]:
    """The settings that cannot hold beside the records of a commit: key → why."""
    source = CommittedSource(commit)
    return {
        key: fault
        for domain in load_domains()
        for key, fault in domain.find_setting_faults(layout, config, source).items()
    }
