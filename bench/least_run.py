"""The least that a cold run does, as a program of its own: ``least_run.run_least(MADE, AT, NAME…)``.

It reads the last commit, has a worker of the sandbox run the script, whose calls are answered at once, and makes the
files that a run has MADE durable as a commit of ours does. It reads no settings, checks nothing and signs nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic_monty import FunctionSnapshot, Monty, MontyComplete

from bench.durable_steps import write_durably
from cleared.git.pack_reader import PackReader

_REF = {"entry_id": "2025-01-001", "date": "2025-01-31", "status": "auto-confirmed", "duplicate": False}
_ANSWERS: dict[str, Any] = {
    "importer_scan": [{"name": "bank.csv", "ledger_account": 1010}],
    "accounts_get": {"account_type": "asset"},
    "journal_add_double": _REF,
    "queue_add_review": {"id": "x"},
    "importer_mark_processed": {"name": "bank.csv"},
    "git_commit": {"success": True, "commit_hash": "run:x"},
    "ctx_log": None,
    "importer_parse": [],
}
_SETTINGS = {"thresholds.auto_confirm": 0.95, "bank_accounts": []}


def run_least(made: str, at: str, *names: str) -> None:
    """``made``: the workspace after a real run; ``at``: one before it; ``names``: of the files that the run wrote."""
    _read_commit(Path(at, ".git"))
    _run_script(Path(at, "agents/ingest.py").read_text())
    write_durably(Path(at, ".git"), {Path(at, name): Path(made, name).read_bytes() for name in names}, b"1\n")


def _read_commit(folder: Path) -> bytes:
    name = (folder / (folder / "HEAD").read_text().split()[1]).read_text().strip()
    found = PackReader(str(folder / "objects")).read(name, 1 << 20)
    assert found is not None
    return found[1]


def _run_script(source: str) -> None:
    with Monty(min_processes=1, max_processes=1) as pool, pool.checkout() as session:
        snapshot: Any = session.feed_start(source)
        while not isinstance(snapshot, MontyComplete):
            if isinstance(snapshot, FunctionSnapshot):
                name = snapshot.function_name
                value = _SETTINGS[snapshot.args[0]] if name == "config_get" else _ANSWERS[name]
                snapshot = snapshot.resume({"return_value": value})
            else:
                snapshot = snapshot.resume(value=_name_function(snapshot.variable_name))


def _name_function(name: str) -> Any:
    def function() -> None: ...

    function.__name__ = name
    return function
