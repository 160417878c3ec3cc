"""Killing one run of an agent at each of its points, in a process and a workspace of its own.

    python -I -m cleared.gate.crash_sweep   then one order as JSON on the standard input

A point is a call of a primitive, where the script is suspended, or a step of the run and of its commit. At each the run
gets SIGKILL from itself; then a new process does what the next command does, runs the agent again where nothing was
committed, and what lies there is compared with the run that nobody killed. All of it has one id and one clock, so that
nothing may differ. Where the run asks a person, each answer is given in a copy, and the run that goes on with it is
killed so, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from cleared.base.clock import FixedClock, format_iso
from cleared.base.errors import ClearedError
from cleared.base.programs import fork_process
from cleared.base.short_text import list_first
from cleared.base.tree_removal import remove_tree
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.changes.workspace_opening import open_workspace
from cleared.git import Snapshot
from cleared.primitives import primitive_registry
from cleared.primitives.context import Context
from cleared.primitives.model_requests import ModelRequest
from cleared.runs.attempt import Attempt, parse_event
from cleared.runs.execution import run_agent
from cleared.runs.model_asking import ModelAsker
from cleared.runs.outcome import RunResult
from cleared.runs.suspended_runs import resume_run
from cleared.sandbox import monty  # noqa: F401 - imported late elsewhere: here each process that is forked would do it
from cleared.trust.approval_record import CONFIG, ApprovalRecord, digest_of, sign_record, text_path, try_parse_record
from cleared.trust.keys import Key, own_key
from cleared.trust.reviewers import review_rules
from cleared.trust.tickets import sign_answer
from cleared.trust.trust_store import Trust, remember_newest
from cleared.trust.workspace_pin import pin_clone

BOOKS: Final = "books"
HOME: Final = "home"
_TEMPLATES: Final = "before"
_MAX_DIFFERENCES: Final = 20
_MAX_ANSWERS: Final = 16
"""Answers that are tried, of all questions."""


class Order(Struct):
    """What is to be done. ``folder`` holds a workspace (``books``) whose drop folder has what the run takes."""

    folder: str
    workspace: str
    agent: str
    path: str
    text: str
    grants: list[str]
    now: str
    event: dict[str, Any] | None
    answers: dict[str, Any]
    trust: dict[str, Any]
    """Whose approvals and runs count, as ``Trust`` has them."""


class Sweep(Struct):
    """What came of it. ``points``: all, in their order."""

    status: str = ""
    """How it ended last."""
    points: list[str] = []
    tree: str = ""
    answers: int = 0
    """With how many answers to its questions it went on."""
    untried: int = 0
    """Answers with which it did not, as there are too many."""
    differing: list[str] = []
    """Where something else lay there afterwards, a sentence each; empty where nothing ever did."""


class _RecordedAnswers(ModelAsker):
    """What models have answered before; they are not asked again."""

    def __init__(self, host: Host, order: Order) -> None:
        super().__init__(host)
        self.answers = dict(order.answers)
        self.now = datetime.fromisoformat(order.now)
        self.run_id = f"{self.now:%Y%m%dT%H%M%SZ}-{hashlib.sha256(order.text.encode()).hexdigest()[:6]}"

    def take_requests(self, missing: Mapping[str, ModelRequest], attempt: Attempt, context: Context) -> bool:
        return False


class _Stage(Struct, frozen=True):
    """A run, or how it goes on with an answer. ``template``: what lies there before."""

    template: Path
    card: str = ""
    """The question that was answered; empty for the run itself."""
    answer: str = ""


def sweep_points(order: Order) -> Sweep:
    """Do the run once, and then kill it at each of its points; the same with each answer to what it asks. Raises
    ``ClearedError`` where the run cannot be done."""
    _make_live(order)
    primitive_registry()  # once, not in each process that is forked
    folder, sweep = Path(order.folder), Sweep()
    stages = [_Stage(_keep_template(folder))]
    for stage in stages:  # which get more where it asks
        _restore(folder, stage.template)
        whole = json.loads(_in_child(partial(_run_whole, order, stage.card)))
        if whole["error"]:
            told = f" with the answer {stage.answer!r}" if stage.card else ""
            raise ClearedError(f"the run itself does not end well{told}: {whole['error']}")
        sweep.status, sweep.tree = whole["status"], whole["tree"]
        sweep.points += whole["points"]
        tried = whole["choices"][: _MAX_ANSWERS - sweep.answers]
        sweep.untried += len(whole["choices"]) - len(tried)
        asked = _keep_template(folder) if tried else folder
        for choice in tried:
            _restore(folder, asked)
            _in_child(partial(_answer, order, whole["card"], choice))
            sweep.answers += 1
            stages.append(_Stage(_keep_template(folder), whole["card"], choice))
        _kill_at_each(order, stage, whole, sweep)
        if len(sweep.differing) == _MAX_DIFFERENCES:
            break
    return sweep


def _kill_at_each(order: Order, stage: _Stage, whole: Mapping[str, Any], sweep: Sweep) -> None:
    points = whole["points"]
    for number, point in enumerate(points):
        _restore(Path(order.folder), stage.template)
        _in_child(partial(_run_killed, order, stage.card, number))
        after = json.loads(_in_child(partial(_recover, order, stage.card, whole["base"])))
        found = _compare(whole, after)
        if found:
            when = f", after the answer {stage.answer!r}" if stage.card else ""
            sweep.differing.append(f"killed at {point} ({number + 1} of {len(points)}{when}): {found}")
        if len(sweep.differing) == _MAX_DIFFERENCES:
            return


def _make_live(order: Order) -> None:
    """Let the version run in the copy, and nowhere else: with a key that lies beside it."""
    root = Path(order.folder) / BOOKS
    pin_clone(root, order.workspace)
    Trust(order.workspace, **{**order.trust, "withdrawn": set(order.trust["withdrawn"])}).save()
    data, key = order.text.encode("utf-8"), own_key(root, create=True)
    assert key is not None
    record = ApprovalRecord(
        "script", order.path, digest_of(data), "certify", order.now, order.workspace, grants=tuple(order.grants)
    )
    files: dict[str, bytes | None] = {order.path: data, text_path(order.path, digest_of(data)): data}
    files[record.file] = sign_record(record, key).render()
    settings = _name_reviewer(order, _find_head(_open(order)), key)
    if settings is not None:
        files[settings.file] = settings.render()

    def stage(_: DecisionContext) -> Decision:
        return Decision(commit_messages.version_certified(order.agent), files, edited_files=(order.path,))

    commit_decision(_open(order), "certify", stage, by="certify")
    if settings is not None:
        remember_newest(settings)


def _name_reviewer(order: Order, snapshot: Snapshot, key: Key) -> ApprovalRecord | None:
    """The settings as approved, with this key among the reviewers, as only they answer; None where none are named."""
    record = try_parse_record(snapshot.read_file(CONFIG))
    if record is None or not review_rules(record.policy).is_restricted:
        return None
    reviewers = [*record.policy["reviewers"], {"name": "certify", "key": key.public}]
    policy = {**record.policy, "reviewers": reviewers}
    at = max(record.at, order.now)
    return sign_record(
        ApprovalRecord("config", CONFIG, record.digest, "certify", at, order.workspace, policy=policy), key
    )


def _open(order: Order, on_step: Callable[[str], None] | None = None) -> Host:
    clock = FixedClock(datetime.fromisoformat(order.now))
    host = open_workspace(Path(order.folder) / BOOKS, clock=clock, say=_say_nothing, on_step=on_step)
    if on_step is not None:
        host.on_call = lambda name: on_step(f"call {name}")
    return host


def _run(host: Host, order: Order, card: str) -> RunResult:
    """The run, or how it goes on with the answer to this question."""
    event = parse_event(order.event) if order.event is not None else None
    go_on = partial(resume_run, identity=card, name=order.agent) if card else None
    return run_agent(host, order.agent, event=event, again=go_on, asker=_RecordedAnswers(host, order))


def _run_whole(order: Order, card: str) -> dict[str, Any]:
    points: list[str] = []
    host = _open(order, points.append)
    base = _find_head(host).commit
    result = _run(host, order, card)
    error = str(result.error) if result.error is not None else ""
    if not result.commits and not error:
        error = "it commits nothing over sample data, so there is nothing to lose"
    question = result.cards[0] if result.status == "waiting" and result.cards else None
    return {
        "points": points,
        "base": base,
        "status": result.status,
        "error": error,
        "card": question.id if question is not None else "",
        "choices": list(question.details["choices"]) if question is not None else [],
        **_describe(host),
    }


def _answer(order: Order, card: str, choice: str) -> None:
    """Answer a question of the run in the copy, as a person would: where reviewers are named, the copy's own."""

    def stage(decision_context: DecisionContext) -> Decision:
        context, right = decision_context.context, decision_context.authorization
        if right.rules.is_restricted:
            key = own_key(decision_context.host.root)
            assert key is not None
            context.cards.prove = lambda asked, *said: sign_answer(
                key, right.workspace_id, asked.id, asked.details.get("ticket"), *said
            )
        context.cards.resolve_card(card, format_iso(context.now), "certify", choice)
        return Decision(commit_messages.version_certified(order.agent))

    commit_decision(_open(order), "certify", stage, by="certify")


def _run_killed(order: Order, card: str, at: int) -> None:
    passed = 0

    def stop(_: str) -> None:
        nonlocal passed
        if passed == at:
            os.kill(os.getpid(), signal.SIGKILL)
        passed += 1

    _run(_open(order, stop), order, card)
    raise ClearedError("the run ended before it came so far: it does something else each time")


def _recover(order: Order, card: str, base: str) -> dict[str, Any]:
    """What the next command does, and then the run again where nothing came of it."""
    host = _open(order)
    with host.open_for_writing("certify"):
        pass
    if _find_head(host).commit == base:
        _run(host, order, card)
    return _describe(host)


def _find_head(host: Host) -> Snapshot:
    with host.open_last_commit() as snapshot:
        return snapshot


def _describe(host: Host) -> dict[str, Any]:
    """The tree of the last commit, and a digest of each file that lies in the workspace."""
    with host.open_last_commit() as snapshot:
        tree = snapshot.tree
    beside = (host.root / ".git", host.layout.state_dir)
    files = {
        path.relative_to(host.root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(host.root.rglob("*"))
        if path.is_file() and not any(path.is_relative_to(each) for each in beside)
    }
    return {"tree": tree, "files": files}


def _compare(whole: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What differs, in words; empty where nothing does."""
    ours, theirs = whole["files"], after["files"]
    paths = sorted(path for path in {**ours, **theirs} if ours.get(path) != theirs.get(path))
    if paths:
        return f"{list_first(paths, 1)} differ{'s' * (len(paths) == 1)}"
    return "the commit has another tree" if whole["tree"] != after["tree"] else ""


def _keep_template(folder: Path) -> Path:
    """A copy of what lies there now."""
    (folder / _TEMPLATES).mkdir(exist_ok=True)
    template = folder / _TEMPLATES / str(len(list((folder / _TEMPLATES).iterdir())))
    for each in (BOOKS, HOME):
        copytree(folder / each, template / each, symlinks=True)
    return template


def _restore(folder: Path, template: Path) -> None:
    for name in (BOOKS, HOME):
        remove_tree(folder / name)
        copytree(template / name, folder / name, symlinks=True)


def _in_child(act: Callable[[], Any]) -> str:
    """Do it in a process of its own, which may be killed; what it gives, as JSON. Empty where it was killed.

    Raises ``ClearedError`` where it ended otherwise.
    """
    ours, theirs = os.pipe()
    child = fork_process()
    if child == 0:
        os.close(ours)
        code = 0
        try:
            said = json.dumps(act())
        except BaseException as error:  # noqa: BLE001 - nothing of the parent's may go on in here
            said, code = str(error), 1
        with os.fdopen(theirs, "w", encoding="utf-8") as pipe:
            pipe.write(said)
        os._exit(code)
    os.close(theirs)
    with os.fdopen(ours, encoding="utf-8") as pipe:
        said = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, -signal.SIGKILL):
        raise ClearedError(said or f"a process of the sweep ended with {code}")
    return said


def _say_nothing(_: str) -> None:
    return None


def main() -> None:
    """In the process of its own: do the order on the standard input, and print what came of it."""
    order = Order(**json.load(sys.stdin))
    try:
        sweep = sweep_points(order)
    except (ClearedError, OSError) as error:
        print(json.dumps({"error": str(error)}))  # noqa: T201
        return
    print(json.dumps(asdict(sweep)))  # noqa: T201


if __name__ == "__main__":
    main()
