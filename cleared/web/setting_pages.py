"""Settings: what they are, changing one, and approving what waits. A harmless one is saved; a change of any other
becomes a card, where it is shown with what it does."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response

from cleared.base.errors import ClearedError, UsageError
from cleared.base.short_text import quote_name
from cleared.base.terminal import count_noun
from cleared.gate.proposals.setting_changes import approve_settings, set_setting
from cleared.gate.proposals.submission import propose_changes
from cleared.gate.proposals.waiting_settings import SHOWN, digest_changes, list_waiting_settings
from cleared.review.action_request import ActionResult
from cleared.web.form_answers import refused
from cleared.web.page import PageRequest
from cleared.web.page_decisions import carry_out, may_change_what_runs
from cleared.workspace.settings.editing import set_value
from cleared.workspace.settings.protected_settings import is_protected
from cleared.workspace.settings.reference import SettingInfo, list_settings
from cleared.workspace.settings.secrets import is_secret
from cleared.workspace.settings.setting_keys import list_setting_values

_CHOICES: Final = re.compile(r"one of (.+)|(true) or (false)")
"""What the type of a setting says of its values, where there are few."""


def show_settings(page: PageRequest, problem: str = "") -> Response:
    """All settings by section, and what waits for approval."""
    host = page.site.open_host()
    sections: dict[str, list[tuple[str, Any, bool]]] = {}
    for key, value, shipped in list_setting_values(host.config):
        if not is_secret(key):
            sections.setdefault(key.partition(".")[0], []).append((key, value, value != shipped))
    try:
        waiting = sorted(list_waiting_settings(host), key=lambda one: one.key)
    except ClearedError as error:
        waiting, problem = [], problem or str(error)
    return page.render(
        "settings.html",
        problem=problem,
        sections=sections,
        waiting=waiting,
        digest=digest_changes((one.key, one.before, one.after) for one in waiting),
        may_approve=may_change_what_runs(page),
    )


def approve_waiting(page: PageRequest) -> Response:
    """Approve the settings that wait, as they were shown."""
    host = page.site.open_host()

    def approve() -> ActionResult:
        outcome = approve_settings(host, page.form.get_all("key"))
        text = f"{count_noun(len(outcome.changes), 'setting')} approved. {outcome.next_step}"
        return ActionResult(text.removesuffix(". "), True)

    def answer(result: ActionResult) -> Response:
        return page.go_to("/settings", result.text) if result.ok else refused(show_settings(page, result.text))

    shown = {SHOWN: page.form.get("digest")}
    return carry_out(page, approve, shown, "/settings", answer, what="Approve settings", changes_what_runs=True)


def show_setting(page: PageRequest, problem: str = "") -> Response:
    """One setting, what it means, and the form to change it."""
    key = page.part("key")
    info, value = _find_setting(page, key)
    found = _CHOICES.fullmatch(info.type) if info is not None else None
    choices = [each for part in found.groups() if part for each in part.split(", ")] if found is not None else []
    return page.render(
        "setting.html",
        problem=problem,
        key=key,
        info=info,
        about=info.doc.replace("``", "") if info is not None else "",
        value=value,
        choices=choices,
        is_protected=is_protected(key),
    )


def change_setting(page: PageRequest) -> Response:
    """Save a harmless one; propose any other, whose card comes next."""
    host, key, value = page.site.open_host(), page.part("key"), page.form.get("value").strip()
    _find_setting(page, key)

    def save() -> ActionResult:
        set_setting(host, key, value)
        return ActionResult(f"{key} is {quote_name(value)} now", True)

    def propose() -> ActionResult:
        path = host.layout.config_file
        with host.open_last_commit() as snapshot:
            text = (snapshot.read_file(path) or b"").decode("utf-8-sig")
        edited = set_value(text, key, value).encode("utf-8")
        proposal, _ = propose_changes(host, [path], texts={path: edited}, message=f"{key}: {value}"[:200])
        return ActionResult(f"{key} becomes {quote_name(value)} once you approve it", True, offer=proposal.card)

    def answer(result: ActionResult) -> Response:
        if not result.ok:
            return refused(show_setting(page, result.text))
        return page.go_to(f"/queue?card={quote(str(result.offer))}" if result.offer else "/settings", result.text)

    change = propose if is_protected(key) else save
    return carry_out(page, change, None, "/settings", answer, what=f"{key}: {value[:100]}", is_long=is_protected(key))


@cache
def _list_infos() -> list[tuple[re.Pattern[str], SettingInfo]]:
    """Each declared setting, with a pattern for the keys that it has."""
    infos = []
    for info in list_settings():
        key = re.escape(info.key).replace(re.escape("[]."), r"\..+\.").replace(re.escape("<name>"), ".+")
        infos.append((re.compile(key), info))
    return infos


def _find_setting(page: PageRequest, key: str) -> tuple[SettingInfo | None, Any]:
    """How it is declared, and its value. Raises ``UsageError`` for none, and for a secret."""
    values = {name: value for name, value, _ in list_setting_values(page.site.open_host().config)}
    info = next((info for pattern, info in _list_infos() if pattern.fullmatch(key)), None)
    if is_secret(key) or (key not in values and info is None):
        raise UsageError(f"there is no setting {key[:80]!r} here", remedy="The settings list all.")
    return info, values.get(key)
