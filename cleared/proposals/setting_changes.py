"""Changing settings: edit, check and approve protected settings in one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from cleared.approvals.approval_record import CONFIG, digest_of
from cleared.approvals.person_only import refuse_in_job
from cleared.approvals.verification import Approvals
from cleared.changes import commit_messages
from cleared.changes.book_sources import CommittedSource
from cleared.changes.commit_messages import CommitSubject
from cleared.changes.host import Host
from cleared.config.editing import set_value
from cleared.config.loading import MAX_BYTES, is_secret, load_config
from cleared.config.model import Config
from cleared.config.protected_settings import (
    compare_settings,
    is_protected,
    protected_settings_of,
    with_protected_settings,
)
from cleared.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.errors import CheckFailed, PolicyError, WorkspaceError
from cleared.gate.candidate import Change, make_candidate
from cleared.gate.examination import Gate
from cleared.gate.regression_tests import CASES_DIR
from cleared.light_dataclass import dataclass
from cleared.proposals.approval import Signer
from cleared.safe_files import read_stable, write_atomic
from cleared.vcs import Unfinished


@dataclass(frozen=True, slots=True)
class SettingsOutcome:
    """What takes effect: ``(key, before, after)`` each, and the commit (None: nothing was to be approved).

    ``apart``: config.yaml itself is not in the commit, as its working copy has edits that are not to go along.
    """

    changes: tuple[tuple[str, Any, Any], ...]
    commit: str | None
    is_uncommitted: bool = False


def set_setting(host: Host, key: str, value: str) -> SettingsOutcome:
    """Change one setting: in ``config.yaml``, in one commit, approved where it is protected. Comments stay.

    A secret is written to the working copy only. Beside other edits of yours the file is not committed, as they would
    go along; what is approved holds all the same. Raises
    ``UsageError`` or ``ConfigError`` where the result would not be valid, ``PolicyError`` for the gate's own rules
    (they need a proposal) and, for protected settings, inside a job; ``CheckFailed`` where a test would break.
    """
    if key.startswith("gate.rules"):
        raise _needs_proposal(key)
    if is_protected(key):
        refuse_in_job()
    path = host.root / host.layout.config_file
    before = path.read_bytes()
    text = set_value(before.decode("utf-8"), key, value).encode("utf-8")
    if is_secret(key):
        write_atomic(path, text)
        return SettingsOutcome((), None, is_uncommitted=True)
    policy = protected_settings_of(host.config)
    if is_protected(key):
        policy = {k: v for k, v in policy.items() if not _is_within(k, key)}
        policy |= {
            k: v for k, v in protected_settings_of(load_config(text.decode("utf-8"))).items() if _is_within(k, key)
        }

    def edit_committed(committed: bytes | None) -> bytes | None:
        if committed is None or committed == before:
            return text
        return set_value(committed.decode("utf-8"), key, value).encode("utf-8")

    return _commit_settings(host, (before, text), edit_committed, policy, commit_messages.setting_changed(key, value))


def add_settings(host: Host, edit: Callable[[str], str], message: CommitSubject) -> SettingsOutcome:
    """Change ``config.yaml`` by ``edit``, which changes no protected setting, in one commit, as ``set_setting`` does.

    Raises what ``edit`` raises, and ``PolicyError`` where the result has other protected settings.
    """
    before = (host.root / host.layout.config_file).read_bytes()
    text = edit(before.decode("utf-8")).encode("utf-8")
    policy = protected_settings_of(host.config)
    changed = compare_settings(
        protected_settings_of(load_config(before.decode("utf-8-sig"))),
        protected_settings_of(load_config(text.decode("utf-8-sig"))),
    )
    if changed:
        raise PolicyError(f"{changed[0][0]} takes effect only when approved", remedy="Set it: cleared config set.")

    def edit_committed(committed: bytes | None) -> bytes | None:
        return text if committed is None or committed == before else edit(committed.decode("utf-8")).encode("utf-8")

    return _commit_settings(host, (before, text), edit_committed, policy, message)


def approve_settings(host: Host) -> SettingsOutcome:
    """Approve ``config.yaml`` as it was edited by hand. Raises as ``set_setting`` does.

    The file is committed along, unless it holds a secret that is not committed yet.
    """
    refuse_in_job()
    path = host.root / host.layout.config_file
    text, _ = read_stable(path, MAX_BYTES, shown=host.layout.config_file)
    policy = protected_settings_of(load_config(text.decode("utf-8-sig")))
    rules = [
        key
        for key, _, _ in compare_settings(protected_settings_of(host.config), policy)
        if key.startswith("gate.rules")
    ]
    if rules:
        raise _needs_proposal(rules[0])

    def edit_committed(committed: bytes | None) -> bytes | None:
        return None if host.redactor.find_secrets(text.decode()) else text

    return _commit_settings(host, (text, text), edit_committed, policy, commit_messages.settings_approved())


def _needs_proposal(key: str) -> PolicyError:
    return PolicyError(
        f"{key} decides what the gate lets pass; it changes only by a proposal of its own",
        remedy="Edit config.yaml, then: cleared agent propose config.yaml.",
    )


def _is_within(key: str, target: str) -> bool:
    return key == target or key.startswith(f"{target}.")


def _commit_settings(
    host: Host, texts: tuple[bytes, bytes], edited: Callable[[bytes | None], bytes | None],
    policy: Mapping[str, Any], message: CommitSubject,
) -> SettingsOutcome:  # fmt: skip
    """``texts``: the working copy before and after; ``edited``: the committed text → what it becomes (None: as is)."""
    before, text = texts
    config = with_protected_settings(load_config(text.decode("utf-8-sig")), policy)
    changes = tuple(compare_settings(protected_settings_of(host.config), policy))
    path, full = host.layout.config_file, host.root / host.layout.config_file
    written: list[bool] = []
    signers: list[Signer] = []
    apart: list[bool] = []

    def stage_settings(decision_context: DecisionContext) -> Decision | None:
        approvals = Approvals(CommittedSource(decision_context.snapshot), host.root, {})
        record = approvals.read_record(CONFIG)
        unsigned = record is None and (
            decision_context.snapshot.read_file(CONFIG) is not None or approvals.is_missing(CONFIG)
        )
        committed = decision_context.snapshot.read_file(path)
        new = edited(committed)
        if new != text:  # the file would have to be other than what lies there
            new = None
            apart.append(True)
        stands = (dict(record.policy) if record else {}) == dict(policy) and not unsigned
        files: dict[str, bytes | None] = {}
        if new is not None and new != committed:
            files[path] = new
        if not stands:
            _check_tests(host, decision_context, config, text)
            signer = Signer(host, approvals, decision_context)
            signers.append(signer)
            signer.sign(kind="config", path=CONFIG, digest=digest_of(new or text), policy=dict(policy))
            files |= signer.files
        if full.read_bytes() != before:
            raise WorkspaceError(f"{path} was edited meanwhile", remedy="Try again.")
        if text != before and (new is None or before != committed):
            write_atomic(full, text)  # the commit replaces only what is as in the last commit
            written.append(True)
        return Decision(message, files) if files else None

    try:
        commit = commit_decision(host, "config", stage_settings)
    except BaseException as error:  # Ctrl-C too
        if written and not isinstance(error, Unfinished):
            write_atomic(full, before)
        raise
    for signer in signers:
        signer.update_trust()
    return SettingsOutcome(changes, commit, bool(apart))


def _check_tests(host: Host, decision_context: DecisionContext, config: Config, text: bytes) -> None:
    """Run the tests under the new settings. Raises ``CheckFailed`` where one breaks."""
    if not any(p.endswith(".json") for p in decision_context.snapshot.list_entries(CASES_DIR)):
        return
    change = Change(
        host.layout.config_file, "config", decision_context.snapshot.read_file(host.layout.config_file), text
    )
    with Gate(host, decision_context.repo) as gate:
        report = gate.examine(replace(make_candidate([change], host), config=config), runs=0)
    broken = [f for f in report.findings if f.rule.startswith("regression")]
    if broken:
        raise CheckFailed(
            "the change breaks what was to stay as it was; nothing was changed:\n"
            + "\n".join(f"  {f.place}: {f.message}. {f.remedy}" for f in broken[:20])
        )
