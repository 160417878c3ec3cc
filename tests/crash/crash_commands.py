"""For each command that commits, a workspace in which it is next; and what must agree once it is done."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import CLOCK, Tree, Workspace, chase, name_shown, read_tree, remove_tree, take_ok, write_tree
from reviewers import People
from soft_passkey import SoftPasskey, register_device
from statement_files import MONTH, write_ofx
from tables import SCHEMA
from tasking import Tasks, task

LATER = "2025-02-10T09:00:00Z"
Prepare = Callable[[Workspace], list[str]]


@dataclass(frozen=True)
class Case:
    """``prepare`` brings a workspace with January's entries to where the command is next, and gives its arguments.
    ``done``: what the command says, refusing, where all is done already; without, it is to succeed."""

    prepare: Prepare
    done: str = ""
    code: int = 0
    """Its exit code when it is done."""
    home: str = "home/cleared"
    """``CLEARED_HOME`` of whoever says it."""
    clock: str = CLOCK
    """When it is said."""


POST = """
for f in importer_scan():
    for t in importer_parse(f["name"]):
        debit, credit = (5030, f["ledger_account"]) if t["amount"] < 0 else (f["ledger_account"], 4900)
        journal_add_double(date=t["date"], description=t["description"], debit_account=debit, credit_account=credit,
            amount=abs(t["amount"]), reference=t["reference"], status="auto-confirmed", confidence=1, evidence="test")
    importer_mark_processed(f["name"])
git_commit("imported")
"""
ELSEWHERE = {
    "task run": "the claim of a worker that is gone is noted: test_crash_tasks",
    "chat": "a session: test_crash_session",
    "meta request": "a session: test_crash_session",
    "meta resume": "a session: test_crash_session",
    "meta reply": "a session: test_crash_session",
    "agent certify": "one decision after a sweep of its own: tests/gate/proposals/test_crash_certificate.py",
    "cycle start": "a loop: tests/work/cycles/test_cycle_kills.py",
    "demo": "makes a sample of its own each time",
    "loop serve": "serves until it is ended",
    "server": "serves until it is ended",
    "up": "serves until it is ended: test_crash_triggers",
    "fleet server": "serves until it is ended: tests/service/fleet/test_fleet_pages.py",
    "fleet demo": "makes a fleet of its own each time",
    "fleet worker": "serves until it is ended: tests/service/fleet",
    "review": "a screen: its keys are the decisions of cleared queue",
    "passkey add": "waits for a device in a browser",
    "config restore": "puts a file back in one move and commits nothing: tests/attacks/test_invalid_settings.py",
    "task list": "reads",
    "task show": "reads",
    "task renumber": "two clones: tests/work/task_runs/test_task_renumbering.py",
    "work status": "reads",
    "task next": "reads",
    "sync": "two clones: tests/changes/sync/test_sync_refusals.py",
    "task claim": "writes to the ledger, and commits nothing: test_crash_tasks",
}


def script(version: int) -> str:
    return f'"""\nname: Probe\ntrigger: on_demand\n"""\n{version}\n'


def proposed(ws: Workspace, version: int = 1) -> str:
    ws.put("agents/probe.py", script(version))
    return str(ws.json("agent", "propose", "probe")["id"])


def approved(ws: Workspace, version: int = 1) -> None:
    take_ok(ws, "agent", "approve", proposed(ws, version))


def approve_proposal(ws: Workspace) -> list[str]:
    approved(ws)
    return ["agent", "approve", proposed(ws, 2)]


def roll_back(ws: Workspace) -> list[str]:
    for version in (1, 2, 3):
        approved(ws, version)
    return ["agent", "rollback", "probe"]


def run_agent(ws: Workspace) -> list[str]:
    ws.agent(
        "probe",
        'journal_add_double(date="2025-02-09", description="accrued", debit_account=5010, credit_account=2100,'
        ' amount=7, confidence=0.9, status="auto-confirmed", evidence="asked")\ngit_commit("agent: accrued")',
    )
    return ["agent", "run", "probe"]


def ask(ws: Workspace) -> str:
    ws.agent(
        "asker",
        'choice = queue_ask("Which?", ["5010", "5060"], timeout="1h", on_timeout="reject")\n'
        'journal_add_double(date="2025-02-09", description="asked", debit_account=int(choice), credit_account=2100,'
        ' amount=7, confidence=0.9, status="auto-confirmed", evidence="asked")\ngit_commit("agent: asked")',
    )
    ws.run("asker")
    return next(card["id"] for card in ws.cards() if card["kind"] == "question")


def add_bank(ws: Workspace) -> list[str]:
    """An account of the books that is not there yet: a commit of the chart, one of the settings, one of the import."""
    file = ws.root.parent / "statement.ofx"
    file.write_text(write_ofx(MONTH))
    return ["bank", "add", str(file), "--id", "second", "--ledger-account", "1025", "--type", "savings", "--yes"]


def decide_thrice(ws: Workspace) -> list[str]:
    """Three lines of one payee, booked to one account by a person: what follows approves itself."""
    ws.config("self_improvement.approve=additive")
    ws.drop("more.csv", chase(*((f"01/0{n}/2025", f"BLUEBIRD HOLDINGS {n}{n}", "-50.00") for n in (1, 2, 3))))
    ws.run("ingest")
    for entry in ws.entries():
        if entry["description"].startswith("BLUEBIRD"):
            ws.ok("queue", "correct", entry["entry_id"], "--account", "5020")
    return ["improve"]


def take_back_and_run_again(ws: Workspace) -> list[str]:
    """January's file, of which an agent has made a total."""
    ws.agent(
        "total",
        "known = len(journal_query(month=1, year=2025)) + 1\n"
        'journal_add_double(date="2025-02-09", description="total", debit_account=5010, credit_account=2100, '
        'amount=known, confidence=0.9, status="auto-confirmed", evidence="counted")\ngit_commit("agent: total")',
    )
    ws.run("total")
    return ["revert", "january.csv", "--yes", "--again"]


def approve_definition(ws: Workspace) -> list[str]:
    ws.put("records/prices.yaml", SCHEMA)
    argv = ("definition", "approve", "records/prices.yaml")
    named = name_shown(argv, ws(*argv))
    assert named is not None
    return [*named]


def approve_settings(ws: Workspace) -> list[str]:
    text = ws.read("config.yaml")
    assert "timezone" in text
    ws.put("config.yaml", text.replace("timezone: ", "timezone: America/New_York # ", 1))
    return ["config", "approve"]


def unset_pushed_key(ws: Workspace) -> list[str]:
    """A key that no version knows has come with a commit."""
    ws.put("config.yaml", ws.read("config.yaml") + "bogus_key: 1\n")
    ws.commit("config.yaml")
    return ["config", "unset", "bogus_key"]


def import_files(ws: Workspace) -> list[str]:
    file = ws.root.parent / "february.csv"
    file.write_text(
        chase(("02/03/2025", "GITHUB *PRO", "-4.00", "2442.40"), ("02/04/2025", "RENT", "-9.00", "2433.40"))
    )
    return ["import", "files", str(file)]


def accept_commit(ws: Workspace) -> list[str]:
    path = "books/2025/01/journal.csv"
    ws.put(path, ws.read(path).replace("COFFEE", "TEA"))
    return ["accept", ws.commit(path), "--reason", "it was tea"]


def damage(ws: Workspace) -> list[str]:
    path = "books/2025/01/journal.csv"
    ws.put(path, ws.read(path).replace("4.50", "4.60", 1))
    ws.commit(path)
    return ["check", "--card"]


def adjust(ws: Workspace) -> list[str]:
    file = ws.root.parent / "adjustments.csv"
    file.write_text("Date,Description,Account,Debit,Credit\n2025-01-31,Wear,5220,12.00,\n,,1590,,12.00\n")
    return ["journal", "adjust", str(file)]


def open_balances(ws: Workspace) -> list[str]:
    text = ws.read("config.yaml")
    ws.put(
        "config.yaml",
        text.replace(
            "# opening: { date: 2024-12-31, balance: 1250.00 }", "opening: { date: 2024-12-31, balance: 1000 }"
        ),
    )
    take_ok(ws, "config", "approve")
    return ["journal", "open"]


def remove_passkey(ws: Workspace) -> list[str]:
    return ["passkey", "remove", register_device(ws.root, SoftPasskey(), "Ana").id]


def agree(ws: Workspace) -> list[str]:
    """1500.00 take two, and one of them has decided."""
    people = People(ws, ws.root.parent, two="500")
    people("ana", "queue", "approve", "2025-01-002")
    return ["queue", "agree", "2025-01-002"]


def receipt(ws: Workspace) -> Path:
    file = ws.root.parent / "bill 2025-01-09 45.10.txt"
    file.write_text("AWS EMEA\nTotal 45.10\n")
    return file


def kept_receipt(ws: Workspace, *options: str) -> str:
    return str(ws.json("receipt", "add", str(receipt(ws)), *options)["receipts"][0]["sha256"][:12])


def unlink_receipt(ws: Workspace) -> list[str]:
    return ["receipt", "unlink", kept_receipt(ws, "--entry", "2025-01-003"), "2025-01-003"]


def recover(ws: Workspace) -> list[str]:
    ws.ok("journal", "void", "2025-01-001", "--reason", "x")
    ws.git("reset", "-q", "--hard", "HEAD~1")
    return ["recover"]


def start_from(ws: Workspace) -> list[str]:
    file = ws.root.parent / "trial.csv"
    file.write_text(
        "Account,Name,Debit,Credit\n2010,Credit card,,300.00\n5020,Software,300.00,\nTotal,,300.00,300.00\n"
    )
    return ["start-from", str(file), "--from", "2024-01-01"]


def planned(ws: Workspace, *numbers: int) -> Tasks:
    tasks = Tasks(ws)
    take_ok(ws, "task", "plan", tasks.file([task(n) for n in numbers]))
    return tasks


def plan_tasks(ws: Workspace) -> list[str]:
    tasks = Tasks(ws)
    return ["task", "plan", tasks.file([task(1), task(2)])]


def add_task(ws: Workspace) -> list[str]:
    tasks = planned(ws, 1)
    file = Path(tasks.file(task(2)))
    return ["task", "add", str(file)]


def claimed(ws: Workspace, command: str, *, written: bool = False) -> list[str]:
    planned(ws, 1).ok("claim", "T-001")
    if written:
        ws.put("docs/T-001.txt", "done\n")
    return ["task", command, "T-001", "--summary", "so it is"]


def retry_task(ws: Workspace) -> list[str]:
    ws.ok(*claimed(ws, "fail"))
    return ["task", "retry", "T-001"]


def archive_tasks(ws: Workspace) -> list[str]:
    numbers = range(1, 12)
    planned(ws, *numbers).complete(*(f"T-{n:03d}" for n in numbers))
    return ["task", "archive"]


def add_test(ws: Workspace) -> list[str]:
    run = ws.json("run", "list")[0]["run_id"]
    return ["test", "add", run, "-m", "as it was"]


def pair_transfers(ws: Workspace) -> list[str]:
    second = "\n  - id: savings\n    name: Savings\n    type: savings\n    ledger_account: 1020\n"
    second += "    format: chase_checking\n    match: { folder: savings }\n"
    ws.put(
        "config.yaml", ws.read("config.yaml").replace("\n  # A second account", f"{second}\n  # A second account", 1)
    )
    take_ok(ws, "config", "approve")
    ws.drop("a.csv", chase(("01/20/2025", "TO SAVINGS", "-500.00")))
    ws.drop("savings/b.csv", chase(("01/22/2025", "FROM CHECKING", "500.00")))
    ws.script(POST)
    (found,) = ws.json("transfers")["proposed"]
    return ["transfers", "pair", *(found[side]["entry_id"] for side in ("out", "in"))]


def after(*before: tuple[str, ...], then: tuple[str, ...]) -> Prepare:
    def prepare(ws: Workspace) -> list[str]:
        for argv in before:
            ws.ok(*argv)
        return list(then)

    return prepare


CASES: dict[str, Case] = {
    "accounts add": Case(after(then=("accounts", "add", "5999", "Other", "--type", "expense"))),
    "accounts rename": Case(after(then=("accounts", "rename", "5220", "Wear"))),
    "accounts close": Case(after(then=("accounts", "close", "5220"))),
    "accounts reopen": Case(after(("accounts", "close", "5220"), then=("accounts", "reopen", "5220"))),
    "agent approve": Case(approve_proposal),
    "agent disable": Case(after(then=("agent", "disable", "ingest", "--reason", "wrong"))),
    "agent enable": Case(after(("agent", "disable", "ingest"), then=("agent", "enable", "ingest")), clock=LATER),
    "agent propose": Case(lambda ws: (ws.put("agents/probe.py", script(1)), ["agent", "propose", "probe"])[1]),
    "agent reject": Case(lambda ws: ["agent", "reject", proposed(ws), "--reason", "no"]),
    "agent rollback": Case(roll_back),
    "agent run": Case(run_agent),
    "bank add": Case(add_bank),
    "config approve": Case(approve_settings),
    "definition approve": Case(approve_definition),
    "config unset": Case(unset_pushed_key, done="does not stand in config.yaml"),
    "config set": Case(after(then=("config", "set", "sandbox.timeout", "20"))),
    "event emit": Case(after(then=("event", "emit", "statement.read"))),
    "import files": Case(import_files),
    "improve": Case(decide_thrice),
    "revert": Case(take_back_and_run_again),
    "import undo": Case(after(then=("import", "undo", "january.csv"))),
    "init": Case(lambda ws: ["init", str(ws.root.parent / "made"), "--name", "Acme"]),
    "accept": Case(accept_commit),
    "journal add": Case(after(then=("journal", "add", "2025-01-31", "Wear", "5220=12.00", "1590=-12.00"))),
    "journal adjust": Case(adjust),
    "check": Case(damage, code=1),
    "journal open": Case(open_balances),
    "journal void": Case(after(then=("journal", "void", "2025-01-001", "--reason", "twice"))),
    "passkey remove": Case(remove_passkey),
    "period close": Case(after(then=("period", "close", "2025-01", "--with-pending"))),
    "period reopen": Case(
        after(("period", "close", "2025-01", "--with-pending"), then=("period", "reopen", "2025-01", "--reason", "x"))
    ),
    "queue agree": Case(agree, home="home-of-ben"),
    "queue answer": Case(lambda ws: ["queue", "answer", ask(ws), "5060"]),
    "queue approve": Case(after(then=("queue", "approve", "2025-01-002", "2025-01-004"))),
    "queue correct": Case(after(then=("queue", "correct", "2025-01-004", "--account", "5060"))),
    "queue expire": Case(lambda ws: (ask(ws), ["queue", "expire"])[1], clock=LATER),
    "queue reject": Case(after(then=("queue", "reject", "2025-01-004", "--outcome", "personal", "--reason", "mine"))),
    "queue skip": Case(after(then=("queue", "skip", "2025-01-002"))),
    "queue undo": Case(
        after(("queue", "approve", "2025-01-002"), ("queue", "approve", "2025-01-004"), then=("queue", "undo"))
    ),
    "receipt add": Case(lambda ws: ["receipt", "add", str(receipt(ws))]),
    "receipt link": Case(lambda ws: ["receipt", "link", kept_receipt(ws), "2025-01-003"]),
    "receipt remove": Case(lambda ws: ["receipt", "remove", kept_receipt(ws)]),
    "receipt unlink": Case(unlink_receipt),
    "reconcile": Case(after(then=("reconcile", "1010", "--date", "2025-01-31", "--balance", "1446.40"))),
    "recover": Case(recover),
    "split": Case(after(then=("split", "2025-01-003", "5010=40.00", "5060=5.10"))),
    "start-from": Case(start_from),
    "task add": Case(add_task),
    "task archive": Case(archive_tasks),
    "task done": Case(lambda ws: claimed(ws, "done", written=True)),
    "task fail": Case(lambda ws: claimed(ws, "fail")),
    "task init": Case(after(then=("task", "init"))),
    "task plan": Case(plan_tasks),
    "task retry": Case(retry_task),
    "task skip": Case(lambda ws: (planned(ws, 1), ["task", "skip", "T-001", "--summary", "no"])[1]),
    "teach": Case(after(then=("teach", "COFFEE", "5070", "--yes"))),
    "test add": Case(add_test),
    "transfers pair": Case(pair_transfers),
    "trust": Case(after(then=("trust", "--new-books"))),
}


RANDOM = re.compile(
    r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}|\b[0-9a-f]{7,64}\b|[A-Za-z0-9+/]{40,}={0,2}|(?<=id.:.)[a-z0-9]{8}\b"
    r"|(?<=\")[a-z0-9]{8}(?=\":\"[0-9a-f]{32}\")"
)
"""Ids of runs, cards, digests and commits, and signatures: what the clock or chance makes."""


class Place:
    """A folder with a workspace and the homes of who uses it. It is put back as it was for each try, at the same path:
    by that a clone is known."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: Tree = []
        self.ws = Workspace(folder / "books")

    def keep(self) -> None:
        self.kept = read_tree(self.folder)

    def put_back(self) -> None:
        remove_tree(self.folder)
        write_tree(self.kept, self.folder)

    def found(self) -> dict[str, Any]:
        """All that has to agree: every file, the commits, what is trusted on this machine."""
        books = [root for root in (self.ws.root, self.folder / "made") if root.exists()]
        trusted = [path for path in self.folder.glob("*/**/workspaces/*.json") if ".git" not in path.parts]
        trusted += self.folder.glob("*/workspaces/*.json")
        # An id that no commit names is nobody's.
        ids = "".join(
            Workspace(root).git("log", "-p", "--format=", "--", "agents/approvals/workspace") for root in books
        )
        return {
            "files": {path: RANDOM.sub("#", text) for root in books for path, text in sorted(read_files(root))},
            "status": [Workspace(root).git("status", "--porcelain") for root in books],
            "commits": [Workspace(root).git("log", "--format=%s").splitlines() for root in books],
            "trust": sorted(read_trust(path) for path in set(trusted) if path.stem in ids),
        }


def read_trust(path: Path) -> str:
    """What a machine trusts, but for what the history says too: that is noted when a run begins."""
    trusted = json.loads(path.read_bytes())
    trusted["withdrawn"] = []  # of questions: it matters where the commit that settled them is lost later
    trusted["barred"] = {key: at for key, at in trusted["barred"].items() if not key.endswith("@starter")}
    return RANDOM.sub("#", json.dumps(trusted, indent=1))


def read_files(root: Path) -> list[tuple[str, str]]:
    found = []
    for path in root.rglob("*"):
        inner = path.relative_to(root)
        if path.is_file() and inner.parts[0] not in (".git", ".cleared"):
            found.append((RANDOM.sub("#", inner.as_posix()), path.read_text("utf-8", "replace")))
    return found


def list_differences(once: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """What ``Place.found`` gives otherwise, line by line."""
    lines = []
    for name in once:
        before, after = (json.dumps(each[name], indent=1).replace("\\n", "\n").splitlines() for each in (once, found))
        lines += [f"{name}: {line}" for line in difflib.unified_diff(before, after, lineterm="", n=1)]
    return lines
