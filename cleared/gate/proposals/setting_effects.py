"""What agents would do otherwise under settings that wait for approval."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from cleared.changes.host import Host
from cleared.gate.candidate import Change, make_candidate
from cleared.gate.examination import Gate
from cleared.gate.proposals.change_text import list_impact
from cleared.gate.proposals.proposal_card import list_unreached
from cleared.gate.proposals.waiting_settings import WaitingSetting, approved_settings
from cleared.workspace.location import Layout
from cleared.workspace.settings.config_file import read_bytes
from cleared.workspace.settings.protected_settings import with_protected_settings


def list_setting_effects(host: Host, waiting: Iterable[WaitingSetting]) -> tuple[list[str], bool]:
    """The same sentences that a proposal of these settings would have on its card, of dry runs of all agents; and
    whether there is a warning among them."""
    settings = dict(approved_settings(host).approved or {})
    for each in waiting:
        settings.pop(each.key, None)
        settings |= {each.key: each.after} if each.after is not None else {}
    text = read_bytes(host.root / Layout.config_file)
    candidate = make_candidate([Change(Layout.config_file, "config", text, text)])
    with Gate(host) as gate:
        report = gate.examine(replace(candidate, config=with_protected_settings(host.config, settings)))
    return [*list_unreached(report), *list_impact(report)], bool(report.list_warnings(of_effects=True))
