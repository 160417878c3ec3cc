"""Rows of ``cleared doctor`` about a workspace: settings, locks, git, approvals, files left over, import folder;
whether git has the whole history, undamaged, its records in order, and anything of it in a second place.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from cleared.base.errors import BusyError, ClearedError, WorkspaceError
from cleared.base.safe_files import is_temporary
from cleared.base.short_text import list_first
from cleared.base.terminal import count_noun, print_message
from cleared.books.importing.drop_folder import ImportSession
from cleared.books.receipt_list import list_receipts
from cleared.books.staged_books import open_books
from cleared.changes.audit.record_violations import find_violations
from cleared.changes.backup.last_backup import read_safety
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.changes.session import compare_with_commit, refuse_differences
from cleared.changes.trace import TraceStore
from cleared.changes.unfinished_merge import explain_unwritable, list_unfinished
from cleared.cli import options
from cleared.cli.doctor_row import Row, check_space, run_check, size_text
from cleared.domains.installed_domains import ManagedFiles
from cleared.gate.proposals.clone_trust import list_signatories, read_identity
from cleared.gate.setting_faults import find_setting_faults
from cleared.git import Repository, Snapshot
from cleared.git.commit_intent import intent_file
from cleared.git.object_check import find_damaged_objects
from cleared.runs.run_queries import read_agents
from cleared.service.notify.channels import find_missing
from cleared.service.notify.push_subscriptions import PushFile, phones_trouble
from cleared.service.notify.script_messages import ScriptMessages, messages_trouble
from cleared.trust.keys import cleared_home, own_key
from cleared.workspace import location
from cleared.workspace.location import find_git_folders
from cleared.workspace.lock import read_holder
from cleared.workspace.process_lock import find_running_service
from cleared.workspace.settings.setting_keys import list_reserved_in_use

_LARGE_TRACE: Final = 1 << 30
_REBUILD: Final = "Run: cleared doctor --rebuild."


def check_workspace(workspace: Path | None) -> Iterator[Row]:
    try:
        root = location.find_workspace(options.chosen_workspace(workspace))
    except WorkspaceError as e:
        is_chosen = options.chosen_workspace(workspace) is not None
        yield Row("workspace", "fail" if is_chosen else "ok", f"none: {e.message}", e.remedy or "")
        return
    yield Row("workspace", "ok", str(root))
    messages: list[str] = []
    was_interrupted = intent_file(root / location.Layout.state).exists()  # opening the workspace completes it
    try:
        host = options.open_host(workspace, messages.append, tells_waiting=False, despite_fault=True)
    except ClearedError as e:
        yield Row("config", "fail", str(e), "")
        return
    if host.policy is not None and host.policy.fault is not None:
        yield Row("config", "fail", host.policy.fault.message, host.policy.fault.remedy or "")
        return
    if host.policy is not None and host.policy.waiting:
        messages.append(host.policy.waiting)
    for line in messages:
        print_message(line)
    summary = (
        f"{host.layout.config_file} is valid; {count_noun(len(host.config.bank_accounts), 'bank account')}, "
        f"{host.config.business.timezone}, confine: {host.config.sandbox.confine}"
    )
    yield Row("config", "ok", summary + _name_reserved(host))
    rows: dict[str, Callable[[], Row]] = {
        "writer lock": lambda: _check_lock(host),
        "service": lambda: _check_service(host),
        "repository": lambda: _check_repository(host),
        "history": lambda: check_history(host),
        "branch": lambda: check_branch(host),
        "records": lambda: check_records(host),
        "settings": lambda: _check_settings(host),
        "backup": lambda: check_backup(host),
        "interrupted commit": lambda: _check_interrupted(host, messages if was_interrupted else []),
        "messages": lambda: _check_messages(host),
        "managed files": lambda: _check_managed_files(host),
        "receipts": lambda: _check_receipts(host),
        "approvals": lambda: _check_approvals(host),
        "stale files": lambda: _check_stale_files(host),
        "trace database": lambda: _check_traces(host),
        "import folder": lambda: _check_import_folder(host),
        "disk": lambda: check_space("disk", host.root),
        "writable": lambda: _check_writable(host),
    }
    for name, look in rows.items():
        yield run_check(name, look)


def _name_reserved(host: Host) -> str:
    """The reserved settings that are not as shipped, as a line of the ``config`` row; empty where there are none."""
    keys = list_reserved_in_use(host.config)
    return f"\nreserved, not read by cleared itself yet: {', '.join(keys)}" if keys else ""


def _check_settings(host: Host) -> Row:
    """Whether the settings in force can hold beside the records, whenever they were approved."""
    with host.open_last_commit() as snapshot:
        faults = find_setting_faults(host.layout, host.config, snapshot)
    if not faults:
        return Row("settings", "ok", "they agree with the records")
    first = min(faults)
    return Row("settings", "fail", "\n".join(each.message for each in faults.values()), faults[first].remedy or "")


def _check_lock(host: Host) -> Row:
    holder = read_holder(host.layout.state_dir)
    if holder is None:
        return Row("writer lock", "ok", "free")
    return Row("writer lock", "warn", f"held by {holder}", "Wait until it is done; it lets go even when it is killed.")


def _check_service(host: Host) -> Row:
    service = find_running_service(host.layout.state_dir)
    return Row(
        "service", "ok", f"up since {service.since} (process {service.pid})" if service else "not up: cleared up"
    )


def _check_messages(host: Host) -> Row:
    trouble = messages_trouble(ScriptMessages(host).status_data())
    if (missing := find_missing(host.config.notifications)) is not None:
        trouble.append(f"notifications.method is {host.config.notifications.method}, and {missing}")
    trouble += phones_trouble(host, PushFile(host.root).status_data())
    if not trouble:
        return Row("messages", "ok", "all that scripts sent were taken")
    return Row("messages", "warn", "\n".join(trouble), "See notifications in config.yaml; cleared up tries again.")


def _check_repository(host: Host) -> Row:
    with Repository.open(host.root, for_writing=False) as repo:
        if (unwritable := explain_unwritable(repo, host.layout)) is not None:
            raise unwritable
        if unfinished := list_unfinished(repo, host.layout, everywhere=True):
            first = unfinished[0]
            return Row("repository", "warn", f"{first.place}: {first.message}", first.remedy or "")
        return Row("repository", "ok", f"{repo.branch.short_name} at {repo.read_head()[:10]}")


def _check_interrupted(host: Host, messages: list[str]) -> Row:
    """A commit that was killed half-way: opening the workspace has completed it. ``messages``: what was said then."""
    name = "interrupted commit"
    if not intent_file(host.layout.state_dir).exists():
        return Row(name, "ok", f"there was one; {' '.join(messages)}" if messages else "none")
    if _check_lock(host).status != "ok":
        return Row(name, "warn", "a commit is under way", "Look again when the other command is done.")
    return Row(
        name,
        "fail",
        "a commit was interrupted and cannot be completed yet: " + (" ".join(messages) or "see git status"),
        "Put right what the other rows say; the next command then completes it.",
    )


def _check_managed_files(host: Host) -> Row:
    with compare_with_commit(host, "doctor") as (repo, snapshot, different):
        if different and (unfinished := list_unfinished(repo, host.layout)):
            raise unfinished[0]
        refuse_differences(different)
        count = sum(len(snapshot.list_entries(folder)) for folder in ManagedFiles(host.layout).folders)
    return Row("managed files", "ok", f"{count_noun(count, 'file')} as committed; cleared check looks inside")


def _check_receipts(host: Host) -> Row:
    """Whether the files of all receipts lie here: no check of the books reads them."""
    kept = list_receipts(host)["receipts"]
    missing = [each["name"] for each in kept if not each["is_here"]]
    if not missing:
        return Row("receipts", "ok", f"{len(kept)} kept" if kept else "none is kept")
    return Row(
        "receipts",
        "warn",
        f"the files of {len(missing)} of {len(kept)} are not in this clone: {list_first(missing, 3)}",
        "Bring back what is committed: git checkout HEAD -- receipts. Take the others from the clone that has them.",
    )


def _check_approvals(host: Host) -> Row:
    """Whether every agent may run, and whose approvals do not count here."""
    agents = read_agents(host)
    disabled = [a["name"] for a in agents if a["state"] == "disabled"]
    barred = [a["name"] for a in agents if a["state"] not in ("approved", "starter", "disabled")]
    strangers = [s for s in list_signatories(host) if s.awaits_trust]
    key = "your key is" if own_key(host.root) else "no key of yours yet"
    count = len(agents) - len(barred) - len(disabled)
    off = f"; disabled: {', '.join(disabled[:5])}{' …' if len(disabled) > 5 else ''}" if disabled else ""
    detail = f"{count} of {len(agents)} agents may run{off}; {key} in {cleared_home()}"
    if host.policy is not None and host.policy.problem is not None:
        return Row("approvals", "warn", f"{detail}; {host.policy.problem.message}", host.policy.problem.remedy or "")
    identity = read_identity(host)
    if identity.id and not identity.pinned:
        return Row("approvals", "warn", f"{detail}; this clone is not trusted on this machine", "See: cleared trust.")
    if strangers:
        return Row(
            "approvals",
            "warn",
            f"{detail}; approvals by {len(strangers)} keys that are not trusted here",
            "Look at them: cleared trust.",
        )
    if barred:
        return Row("approvals", "warn", f"{detail}; not {', '.join(barred[:5])}", "cleared agent propose NAME.")
    return Row("approvals", "ok", detail)


def _check_stale_files(host: Host) -> Row:
    """What a killed process can leave; not judged while a command is at work."""
    if _check_lock(host).status != "ok":
        return Row("stale files", "ok", "not looked for while another command is at work")
    stale = []
    for root in (host.root, cleared_home()):
        for folder, folders, files in os.walk(root, followlinks=False):
            directory = Path(folder)
            if directory == host.root:
                folders[:] = [d for d in folders if d != ".git"]
            stale += [directory / name for name in files if is_temporary(name)]
    for git in dict.fromkeys(find_git_folders(host.root) or ()):
        locks = (git / "index.lock", git / "HEAD.lock", *(git / "refs").rglob("*.lock"))
        stale += [path for path in (*locks, *git.glob("cleared-index-*")) if path.exists()]
    if not stale:
        return Row("stale files", "ok", "none")
    shown = "\n".join(os.path.relpath(path, host.root) for path in sorted(stale)[:10])
    more = f"\nand {len(stale) - 10} more" if len(stale) > 10 else ""
    return Row(
        "stale files",
        "warn",
        f"left by a process that was killed, or set aside:\n{shown}{more}",
        "If no git or cleared command is running, look at them and delete them.",
    )


def _check_traces(host: Host) -> Row:
    traces = TraceStore(host.layout.state_dir)
    size = sum(path.stat().st_size for path in host.layout.state_dir.glob("runs.db*"))
    if not traces.path.exists():
        return Row("trace database", "ok", "none yet; the first run makes it")
    damage = traces.find_damage()
    if damage:
        return Row("trace database", "warn", f"damaged ({damage}); no entry, card or decision is in it", _REBUILD)
    if size > _LARGE_TRACE:
        return Row("trace database", "warn", f"{size_text(size)}", _REBUILD)
    return Row("trace database", "ok", f"{size_text(size)}, sound")


def _check_import_folder(host: Host) -> Row:
    with host.open_last_commit() as snapshot:
        books, bank = open_books(host.layout, CommittedSource(snapshot))
        drop = ImportSession(host.layout, host.config, books, bank, snapshot.has_file)
        good = drop.scan_folder()
    rows = sum(len(file.new) for file in good)
    detail = (
        f"{count_noun(len(good), 'file waits', 'files wait')} with {count_noun(rows, 'new row')}"
        if good
        else "no files wait"
    )
    if not drop.refused:
        return Row("import folder", "ok", detail)
    shown = "\n".join(f"{name}: {str(error).splitlines()[0]}" for name, error in list(drop.refused.items())[:10])
    return Row(
        "import folder",
        "warn",
        f"{detail}; {len(drop.refused)} cannot be read:\n{shown}",
        "Correct or remove them; they stay where they are until then.",
    )


def _check_writable(host: Host) -> Row:
    layout = host.layout
    names = [".", ".git", layout.import_dir, layout.processed_dir, *ManagedFiles(layout).folders]
    folders = [host.root / name for name in names if (host.root / name).is_dir()]
    barred = [path for path in folders if not os.access(path, os.W_OK | os.X_OK)]
    if not barred:
        try:
            with tempfile.TemporaryFile(dir=layout.state_dir if layout.state_dir.is_dir() else host.root) as file:
                file.write(b"x")
        except OSError:
            barred = [host.root]
    if barred:
        shown = ", ".join(path.relative_to(host.root).as_posix() for path in barred)
        return Row("writable", "fail", f"not writable: {shown}", "Give yourself the right to write there.")
    return Row("writable", "ok", count_noun(len(folders), "folder"))


NAME = "history"
_OTHER_ROWS = ("lost", "unchanged")
"""What the rows ``branch`` and ``managed files`` say."""


def check_history(host: Host) -> Row:
    """Every object that git has, read; those of the last commit named by their path."""
    with Repository.open(host.root, for_writing=False) as repo:
        damaged = find_damaged_objects(repo, host.layout.state_dir)
    if damaged is None:
        return Row(NAME, "ok", "every object is there and whole")
    named = [path or f"object {oid[:10]}" for oid, path in damaged.objects.items()]
    shown = f"{', '.join(named[:5])}{' …' if len(named) > 5 else ''}" if named else damaged.git_messages[0]
    detail = f"damaged or missing: {shown}"
    if damaged.remedy:
        return Row(NAME, "fail", detail, f"The working tree has it: {damaged.remedy}")
    return Row(
        NAME,
        "fail",
        detail,
        "Keep a copy of the directory, then take the objects from another clone "
        '(docs/howto/recover.md, "git\'s own files are damaged"). See all of it: git fsck --full.',
    )


def check_backup(host: Host) -> Row:
    """How old the last backup is, and what is in no second place."""
    now = host.clock.now()
    with Repository.open(host.root, for_writing=False) as repo:
        safety = read_safety(repo)
    unpushed = safety.describe_unpushed()
    detail = safety.describe_backup(now) + (f"; no remote has {unpushed}" if unpushed else "")
    if not safety.is_late(now):
        return Row("backup", "ok", detail)
    only_here = f"only this disk has what was committed since {safety.unsaved.oldest:%Y-%m-%d}"
    return Row("backup", "warn", f"{detail}\n{only_here}", "Back it up: cleared backup FILE; or push it: git push.")


def check_branch(host: Host) -> Row:
    """Whether git took something out of the branch that runs and decisions had committed here."""
    with Repository.open(host.root, for_writing=False) as repo:
        try:
            lost = host.find_lost_rows(repo, Snapshot(repo, repo.read_head()))
        except BusyError as busy:
            return Row("branch", "warn", busy.message, busy.remedy or "")
    if lost is None:
        return Row("branch", "ok", "it has all that was committed here")
    return Row("branch", "fail", str(lost), lost.remedy)


def check_records(host: Host) -> Row:
    """Whether a check of the records names something: a forged commit, too, that only adds to them."""
    try:
        violations = [each for each in find_violations(host) if each.check not in _OTHER_ROWS]
    except BusyError as busy:
        return Row("records", "warn", busy.message, busy.remedy or "")
    if not violations:
        return Row("records", "ok", "every invariant holds, and somebody answers for each commit")
    first = violations[0]
    detail = f"{count_noun(len(violations), 'violation')}, the first: [{first.check}] {first.message}"
    return Row("records", "fail", detail, f"{first.remedy} See each: cleared check.")
