"""Changing settings: edit, check and approve protected settings in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.errors import CheckFailed, ClearedError, Place, PolicyError, WorkspaceError
from cleared.base.safe_files import write_atomic
from cleared.base.terminal import count_noun
from cleared.changes import commit_messages
from cleared.changes.attestation import load_approvals
from cleared.changes.commit_messages import CommitSubject
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision, undo_unless_decided
from cleared.changes.decisions.shown_cards import require_shown
from cleared.changes.host import Host
from cleared.gate.candidate import Change, make_candidate
from cleared.gate.examination import Gate
from cleared.gate.file_kinds import CASES_DIR
from cleared.gate.named_folders import refuse_used_folders
from cleared.gate.proposals.record_signing import Signer, count_settings
from cleared.gate.proposals.waiting_settings import SHOWN, approved_settings, digest_changes, select_changes
from cleared.gate.setting_faults import find_setting_faults
from cleared.trust.approval_record import CONFIG, ApprovalRecord, digest_of
from cleared.trust.person_only import refuse_in_job
from cleared.workspace.fleet_clones import name_next_step
from cleared.workspace.settings.config_file import load_config_file, read_bytes, read_text
from cleared.workspace.settings.edit_checks import is_mended
from cleared.workspace.settings.editing import remove_value, set_value
from cleared.workspace.settings.loading import load_config, read_valid_part
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.protected_settings import (
    compare_settings,
    is_protected,
    is_within,
    protected_settings_of,
    with_protected_settings,
)
from cleared.workspace.settings.secrets import is_secret


class SettingsOutcome(Struct, frozen=True):
    """What takes effect: ``(key, before, after)`` each, and the commit (None: nothing was to be approved).

    ``is_uncommitted``: config.yaml itself is not in the commit, as its working copy has edits that are not to go along.
    ``next_step``: what a person has to do beside.
    """

    changes: tuple[tuple[str, Any, Any], ...]
    commit: str | None
    is_uncommitted: bool = False
    next_step: str = ""


def set_setting(host: Host, key: str, value: str) -> SettingsOutcome:
    """Change one setting: in ``config.yaml``, in one commit, approved where it is protected. Comments stay.

    A secret is written to the working copy only. Beside other edits of yours the file is not committed, as they would
    go along; what is approved holds all the same. In a file that is not valid only what is wrong can be set; nothing is
    approved before the last of it is mended. Raises
    ``UsageError`` or ``ConfigError`` where the result would not be valid, ``PolicyError`` for the gate's own rules
    (they need a proposal), for a folder that is used for something else, and, for protected settings, inside a job;
    ``CheckFailed`` where a test would break.
    """

    def edit(text: str) -> str:
        return set_value(text, key, value)

    return _change_key(host, key, edit, commit_messages.setting_changed(key, value), is_set=True)


def unset_setting(host: Host, key: str) -> SettingsOutcome:
    """Take one key out of ``config.yaml``, so that it is as shipped; of a key that is given twice, the later ones.

    As ``set_setting``, which see for what it raises. In a file that is not valid it approves nothing: what is in force
    stays so.
    """
    return _change_key(
        host, key, lambda text: remove_value(text, key), commit_messages.setting_removed(key), is_set=False
    )


def _change_key(
    host: Host, key: str, edit: Callable[[str], str], message: CommitSubject, *, is_set: bool
) -> SettingsOutcome:
    if is_protected(key):
        refuse_in_job()
    path, before = host.root / host.layout.config_file, _read_working_copy(host)
    found = read_text(path)[1]
    was_valid = not found.problems
    if key.startswith("gate.rules") and was_valid:
        raise _needs_proposal(key)
    text = edit(before.decode("utf-8")).encode("utf-8")
    if not was_valid and not is_mended(found, read_valid_part(text.decode("utf-8"))):
        load_config_file(path)  # which says what is wrong instead
    if is_secret(key):
        write_atomic(path, text)
        return SettingsOutcome((), None, is_uncommitted=True)

    def edit_committed(committed: bytes | None) -> bytes | None:
        if committed is None or committed == before:
            return text
        try:
            return edit(committed.decode("utf-8")).encode("utf-8")
        except (ClearedError, UnicodeDecodeError):  # it has not the mistake, or others
            return None

    policy = _change_policy(host, before, text, key) if was_valid else _mend_policy(host, text, key) if is_set else None
    return _commit_settings(host, (before, text), edit_committed, policy, message)


def add_settings(host: Host, edit: Callable[[str], str], message: CommitSubject) -> SettingsOutcome:
    """Change ``config.yaml`` by ``edit`` in one commit, as ``set_setting`` does. Approved is what ``edit`` writes, and
    nothing that waited in the file before.

    Raises what ``edit`` raises, ``PolicyError`` for the gate's own rules, and inside a job.
    """
    refuse_in_job()
    before = _read_working_copy(host)
    text = edit(before.decode("utf-8")).encode("utf-8")
    policy = _change_policy(host, before, text)

    def edit_committed(committed: bytes | None) -> bytes | None:
        return text if committed is None or committed == before else edit(committed.decode("utf-8")).encode("utf-8")

    return _commit_settings(host, (before, text), edit_committed, policy, message)


def approve_settings(host: Host, keys: Sequence[str] = ()) -> SettingsOutcome:
    """Approve ``config.yaml`` as it was edited by hand, or only these keys of it. Raises as ``set_setting`` does, and
    ``PolicyError`` where what it changes is not what a person was shown.

    The file is committed along, unless it holds a secret that is not committed yet, or more than these keys waits.
    """
    refuse_in_job()
    text = _read_working_copy(host)
    load_config_file(host.root / host.layout.config_file)  # which names what mends it
    wanted, approved = protected_settings_of(load_config(text.decode("utf-8-sig"))), approved_settings(host).approved
    every = compare_settings(approved or {}, wanted)
    changes = select_changes(every, keys, {*wanted, *(approved or {})})
    if rules := [key for key, _, _ in changes if key.startswith("gate.rules")]:
        raise _needs_proposal(rules[0])
    is_part = len(changes) < len(every)
    if is_part and approved is None:
        raise PolicyError(
            "nobody has approved the settings of these books yet, so they are approved as a whole",
            remedy="Look at them all: cleared config approve.",
        )
    if changes:
        title = count_noun(len(changes), "setting")
        require_shown(SHOWN, title, digest_changes(changes), "cleared config approve")
    policy = _take_keys(approved or {}, wanted, [key for key, _, _ in changes]) if is_part else wanted

    def edit_committed(committed: bytes | None) -> bytes | None:
        return None if is_part or host.redactor.find_secrets(text.decode()) else text

    return _commit_settings(host, (text, text), edit_committed, policy, commit_messages.settings_approved())


def _read_working_copy(host: Host) -> bytes:
    """``config.yaml`` as it lies there; where a commit was killed, once its files are in their places."""
    host.repair_interrupted_commit()
    return read_bytes(host.root / host.layout.config_file)


def _take_keys(policy: Mapping[str, Any], wanted: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """These settings, with these keys as wanted."""
    taken = dict(policy)
    for key in keys:
        taken.pop(key, None)
        if key in wanted:
            taken[key] = wanted[key]
    return taken


def _needs_proposal(key: str) -> PolicyError:
    return PolicyError(
        f"{key} decides what the gate lets pass; it changes only by a proposal of its own",
        remedy="Edit config.yaml, then: cleared agent propose config.yaml.",
    )


def _change_policy(host: Host, before: bytes, after: bytes, key: str = "") -> dict[str, Any]:
    """The approved settings, with what differs between two texts of ``config.yaml`` and what lies in ``key`` as in the
    second. Raises ``PolicyError`` where none were approved here, and for the gate's own rules."""
    force = approved_settings(host)
    if force.approved is None:
        assert force.problem is not None
        raise force.problem
    old, new = (protected_settings_of(load_config(text.decode("utf-8-sig"))) for text in (before, after))
    changed = {each for each, _, _ in compare_settings(old, new)}
    if rules := [each for each in changed if each.startswith("gate.rules")]:
        raise _needs_proposal(rules[0])
    policy = force.approved
    return _take_keys(policy, new, changed | {each for each in {*policy, *new} if is_within(each, (key,))})


def _mend_policy(host: Host, after: bytes, key: str) -> dict[str, Any] | None:
    """What is approved from now on where ``key`` was set in a file that was not valid; None where nothing more is: it
    is not valid yet, or nobody's approval counts here, so that there is nothing to begin from."""
    approved, found = approved_settings(host).approved, read_valid_part(after.decode("utf-8-sig"))
    if found.problems or approved is None or key.startswith("gate.rules"):
        return None
    wanted = protected_settings_of(found.config)
    policy = _take_keys(approved, wanted, [each for each in {*wanted, *approved} if is_within(each, (key,))])
    return policy if policy != approved else None


def _commit_settings(
    host: Host,
    texts: tuple[bytes, bytes],
    edited: Callable[[bytes | None], bytes | None],
    policy: Mapping[str, Any] | None,
    message: CommitSubject,
) -> SettingsOutcome:
    """``texts``: the working copy before and after; ``edited``: the committed text → what it becomes (None: as is);
    ``policy``: what is approved from now on (None: what was)."""
    before, text = texts
    config = None if policy is None else with_protected_settings(load_config(text.decode("utf-8-sig")), policy)
    approved = approved_settings(host).approved or {}
    changes = () if policy is None else tuple(compare_settings(approved, policy))
    path, full = host.layout.config_file, host.root / host.layout.config_file
    written: list[bool] = []
    counting: list[ApprovalRecord] = []
    apart: list[bool] = []

    def stage_settings(decision_context: DecisionContext) -> Decision | None:
        approvals = load_approvals(host, decision_context.snapshot)
        record = approvals.read_record(CONFIG)
        if config is not None:
            refuse_used_folders(host, config, {key for key, _, _ in changes}, decision_context.snapshot)
            faults = find_setting_faults(host.layout, config, decision_context.snapshot)
            for fault in (faults[key] for key, _, _ in changes if key in faults):
                raise fault
        unsigned = record is None and (
            decision_context.snapshot.read_file(CONFIG) is not None or approvals.is_missing(CONFIG)
        )
        if config is not None and record is not None and dict(record.policy) != dict(approved):
            raise WorkspaceError("other settings were approved meanwhile", place=Place(CONFIG), remedy="Try again.")
        committed = decision_context.snapshot.read_file(path)
        new = edited(committed)
        if new != text:  # the file would have to be other than what lies there
            new = None
            apart.append(True)
        stands = (dict(record.policy) if record else {}) == dict(policy or {}) and not unsigned
        files: dict[str, bytes | None] = {}
        if new is not None and new != committed:
            files[path] = new
        if config is None or policy is None:
            pass  # the file alone is mended
        elif not stands:
            _check_tests(host, decision_context, config, text)
            signer = Signer(host, approvals, decision_context)
            counting.append(
                signer.sign(
                    kind="config", path=CONFIG, digest=digest_of(new or text), policy=dict(sorted(policy.items()))
                )
            )
            files |= signer.files
        elif record is not None:  # a command that was killed after its commit may not have come to this
            counting.append(record)
        if full.read_bytes() != before:
            raise WorkspaceError(f"{path} was edited meanwhile", remedy="Try again.")
        if text != before and (new is None or before != committed):
            write_atomic(full, text)  # the commit replaces only what is as in the last commit
            written.append(True)
        return Decision(message, files) if files else None

    def restore_file() -> None:
        if written:
            write_atomic(full, before)

    with undo_unless_decided(restore_file):
        commit = commit_decision(host, "config", stage_settings)
    for record in counting[-1:]:
        count_settings(record)
    return SettingsOutcome(changes, commit, bool(apart), name_next_step(host.root, changes))


def _check_tests(host: Host, decision_context: DecisionContext, config: Config, text: bytes) -> None:
    """Run the tests under the new settings. Raises ``CheckFailed`` where one breaks."""
    if not any(p.endswith(".json") for p in decision_context.snapshot.list_entries(CASES_DIR)):
        return
    change = Change(
        host.layout.config_file, "config", decision_context.snapshot.read_file(host.layout.config_file), text
    )
    with Gate(host, decision_context.repo) as gate:
        report = gate.examine(replace(make_candidate([change]), config=config), runs=0)
    broken = [f for f in report.findings if f.rule.startswith("regression")]
    if broken:
        raise CheckFailed(
            "the change breaks what was to stay as it was; nothing was changed:\n"
            + "\n".join(f"  {f.place}: {f.message}. {f.remedy}" for f in broken[:20])
        )
