"""Thirty changes by hand of what is easily left untested: limits, cleaning up after a failure, a second look under a
lock. Each is made in a copy of the checkout, and the tests nearest to it are run, until one fails.

    python -m tests.support.hand_mutants                  all of them
    python -m tests.support.hand_mutants --only draft.py   those whose file or change has the word in it

The nearest tests are those that name the changed module, then those of its room (``pytest --room``). Printed is each
change with the test that noticed it, or that it *survived*: then write a test. The score stands in ``docs/testing.md``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_OUT = (".git", ".venv", ".ci-venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis")
NOTHING_COLLECTED = 5


@dataclass(frozen=True)
class Mutant:
    """``old`` stands once in ``cleared/FILE``, and ``new`` takes its place."""

    file: str
    old: str
    new: str

    @property
    def selections(self) -> list[str]:
        """The module, then its room."""
        return [self.file.removesuffix(".py"), self.file.partition("/")[0]]


MUTANTS = (
    Mutant(
        "git/commit.py",
        'refuse_obstacles(repo, intent, edited)\n            report_step("verified")',
        'report_step("verified")',
    ),
    Mutant("git/commit.py", "            refuse_unfinished_merge(repo)\n", ""),
    Mutant("git/commit.py", "as error:\n            self._undo_preparation()\n", "as error:\n"),
    Mutant("changes/draft.py", "if repo.find_head() == snapshot.commit:", "if False:"),
    Mutant("changes/imported_files.py", "MAX_HELD_FILES: Final = 1_000", "MAX_HELD_FILES: Final = 100_000"),
    Mutant("changes/agent_log.py", "if len(data) > MAX_WAITING_BYTES:", "if False:"),
    Mutant("changes/trace.py", "MAX_VALUE: Final = 2_000", "MAX_VALUE: Final = 2_000_000"),
    Mutant("runs/execution.py", "            if attempt == 2:\n", "            if attempt == 1:\n"),
    Mutant("gate/impact.py", '>= 2 * self.before["cards"]', '>= 3 * self.before["cards"]'),
    Mutant("gate/impact.py", '>= 2 * self.before["cards"]', '> self.before["cards"]'),
    Mutant("gate/proposals/submission.py", "[:_MAX_MESSAGE]", ""),
    Mutant("jobs/tasks/task_ledger.py", "            self._file.truncate(size)\n", ""),
    Mutant("jobs/tasks/task_ledger.py", "        file.truncate(end_of_lines(file))\n", ""),
    Mutant("jobs/inbox.py", "if waiting >= MAX_WAITING:", "if waiting > MAX_WAITING:"),
    Mutant("jobs/loop_state.py", 'del state["jobs"][:-MAX_JOBS], state["knowledge"][:-MAX_KNOWLEDGE]', "pass"),
    Mutant(
        "jobs/loop_state.py", 'del state["safety_stops"][:-MAX_SAFETY_STOPS], state["notices"][:-MAX_NOTICES]', "pass"
    ),
    Mutant("work/task_runs/task_claims.py", "    if blockers:\n", "    if False:\n"),
    Mutant("sandbox/script_source.py", "MAX_BYTES = 256 << 10", "MAX_BYTES = 256 << 20"),
    Mutant("sandbox/result_values.py", "MAX_ITEMS = 100_000", "MAX_ITEMS = 100_000_000"),
    Mutant("sandbox/worker_pool.py", "if self._live >= MAX_WORKERS:", "if self._live > MAX_WORKERS:"),
    Mutant(
        "sandbox/worker_pool.py",
        "        except BaseException:\n            with self._lock:\n                self._live -= 1\n",
        "        except BaseException:\n",
    ),
    Mutant("web/request_guard.py", "_LEAST_RATE: Final = 32 << 10", "_LEAST_RATE: Final = 32"),
    Mutant("web/request_guard.py", "if taken > MAX_BODY:", "if False:"),
    Mutant("web/access.py", "if self._wrong >= MAX_TRIES:", "if self._wrong > MAX_TRIES:"),
    Mutant("web/access.py", "while len(self._sessions) >= MAX_SESSIONS:", "while False:"),
    Mutant("web/long_work.py", "if len(active) >= MAX_ACTIVE:", "if len(active) > MAX_ACTIVE:"),
    Mutant("web/webhook_intake.py", "        request.app.state.waiters -= 1\n", "        pass\n"),
    Mutant("web/http_server.py", "if len(silent) > MAX_SILENT:", "if False:"),
    Mutant("trust/approval_record.py", "if len(data) > _MAX_BYTES:", "if False:"),
    Mutant(
        "trust/approval_record.py", "if any(len(getattr(record, name)) > _MAX_TEXT for name in texts):", "if False:"
    ),
    Mutant(
        "workspace/lock.py",
        "        if _held.get(key) == me:\n            raise",
        "        if False:\n            raise",
    ),
    Mutant("workspace/lock.py", "                queue.unlink(missing_ok=True)\n", "                pass\n"),
    Mutant("books/importing/held_rows.py", "if len(early) > MAX_LATE_ROWS:", "if len(early) > 2 * MAX_LATE_ROWS:"),
    Mutant(
        "books/importing/held_rows.py",
        "    if len(late) > MAX_LATE_ROWS:\n",
        "    if len(late) > 2 * MAX_LATE_ROWS:\n",
    ),
    Mutant("books/books_draft.py", "        self.imports.verify_unchanged()\n", "        pass\n"),
)


def find_noticing_test(copy: Path, mutant: Mutant, seconds: float) -> str:
    """The first test that fails with the change in the copy; empty where none does."""
    path = copy / "cleared" / mutant.file
    text = path.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, (mutant.file, mutant.old)
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    passed_over: list[str] = []
    try:
        for selection in mutant.selections:
            while noticed := _run_tests(copy, ["--room", selection], passed_over, seconds):
                path.write_text(text, encoding="utf-8")
                if not _run_tests(copy, [noticed], [], seconds):
                    return noticed
                passed_over.append(noticed)  # it fails without the change, too
                path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        return ""
    finally:
        path.write_text(text, encoding="utf-8")


def _run_tests(copy: Path, chosen: list[str], passed_over: list[str], seconds: float) -> str:
    """The first test that fails; empty where none does."""
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONPYCACHEPREFIX": str(copy.parent / "compiled")}
    words = [sys.executable, "-m", "pytest", "-x", "-n", "2", *chosen]
    words += [word for test in passed_over for word in ("--deselect", test)]
    try:
        done = subprocess.run(words, cwd=copy, env=environment, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"{' '.join(chosen)} took more than {seconds:g} seconds; say --seconds") from None
    if done.returncode in (0, NOTHING_COLLECTED):
        return ""
    failed = re.search(rb"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if failed is None:
        raise SystemExit(f"{' '.join(chosen)} ended with {done.returncode}: {done.stdout[-2000:].decode()}")
    return failed[1].decode()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--only", default="", help="those whose file or change has this in it")
    parser.add_argument("--seconds", type=float, default=900, help="how long the tests of one change may take")
    options = parser.parse_args()
    chosen = [each for each in MUTANTS if options.only in f"{each.file} {each.old} {each.new}"]
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for mutant in chosen:
            noticed = find_noticing_test(copy, mutant, options.seconds)
            survived += not noticed
            change = f"{mutant.old.strip().splitlines()[0]} -> {(mutant.new.strip().splitlines() or ['nothing'])[0]}"
            print(f"{mutant.file}: {change}: {noticed or 'SURVIVED'}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} noticed")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
