"""What of a proposal will not work as this machine and these settings are, with the command that helps: what the host
can know, and the person who approves may not."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress

from cleared.base.errors import ClearedError, WorkspaceError
from cleared.base.short_text import join_words
from cleared.base.terminal import escape_text
from cleared.changes.host import Host
from cleared.domains.installed_domains import parse_header
from cleared.gate.proposals.proposal import Proposal
from cleared.llm.api_keys import read_model_choice
from cleared.sandbox.header import Header
from cleared.sandbox.trigger_kinds import FILE_WATCH, ON_DEMAND, WEBHOOK, kinds_of
from cleared.sandbox.used_primitives import MODEL_PRIMITIVES
from cleared.trust.verification import Approvals
from cleared.workspace.location import Layout, name_script
from cleared.workspace.process_lock import find_running_service
from cleared.workspace.settings.loading import load_config
from cleared.workspace.settings.model import Config
from cleared.workspace.watched_names import WatchedNames


def list_obstacles(host: Host, proposal: Proposal, olds: Mapping[str, bytes | None], approvals: Approvals) -> list[str]:
    """One sentence each. ``olds``: the approved version of each file."""
    config, lines = _read_config(host, proposal), []
    for file in proposal.data["files"]:
        path, text = str(file["path"]), proposal.texts[str(file["path"])]
        if file["kind"] != "agent" or text is None:
            continue
        header, old = (_read_header(data, path) for data in (text, olds.get(path)))
        if header is None:
            continue
        name = name_script(path)
        if why := approvals.find_disabling(path):
            lines.append(f"{name} runs only once it is enabled again: {why} (cleared agent enable {name}).")
        if old is None or (old.triggers, old.schedule, old.watch, old.event) != (
            header.triggers,
            header.schedule,
            header.watch,
            header.event,
        ):
            lines += _list_start_obstacles(host, name, header, is_new=old is None)
        lines += _list_grant_obstacles(host, config, name, proposal.data["grants"].get(path, ()))
    return lines


def _list_start_obstacles(host: Host, name: str, header: Header, *, is_new: bool) -> Iterator[str]:
    kinds = [kind for kind in kinds_of(header) if kind is not ON_DEMAND]
    if kinds and find_running_service(host.layout.state_dir) is None:
        started = join_words([kind.label for kind in kinds], "or")
        yield (
            f"cleared up does not run here: {name} will not be started {started} until it does (cleared up --detach, "
            "or cleared service install)."
        )
    if FILE_WATCH in kinds:
        names = WatchedNames(os.path.realpath(host.root), header.watch)
        yield from (f"{name} is never started by files there: {problem}." for problem in names.excluded)
        for folder in names.find_directories():
            if not folder.is_dir():
                shown = escape_text(os.path.relpath(folder, os.path.realpath(host.root)))
                yield f"The folder {shown}/, which {name} watches, is not there yet: make it (mkdir -p {shown})."
    if WEBHOOK in kinds and is_new:
        yield f"No program can call {name} yet: cleared webhook add {name} makes the secret that it needs."


def _list_grant_obstacles(host: Host, config: Config, name: str, used: object) -> Iterator[str]:
    primitives = [str(each) for each in used] if isinstance(used, list | tuple) else []
    grants = {host.registry[each].grant for each in primitives if each in host.registry}
    if "notify.send" in grants and config.notifications.method in (None, "none"):
        yield (
            f"Messages are off: what {name} sends will not reach you (cleared config set notifications.method smtp, "
            "email or exec)."
        )
    if any(each in MODEL_PRIMITIVES for each in primitives):
        try:
            read_model_choice(config.llm)
        except WorkspaceError as error:
            yield f"{name} asks a language model, and {error.message}. {error.remedy}"


def _read_config(host: Host, proposal: Proposal) -> Config:
    """The settings as they would be then."""
    text = proposal.texts.get(Layout.config_file)
    if text is not None:
        with suppress(ClearedError, UnicodeDecodeError):
            return load_config(text.decode("utf-8-sig"))
    return host.config


def _read_header(data: bytes | None, path: str) -> Header | None:
    return parse_header(data.decode("utf-8", "replace"), path)[0] if data is not None else None
