"""``check``, again and again, beside real imports: never a word of what is not so."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from harness import Workspace, chase

from cleared.changes.audit.record_violations import find_violations
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.manual_runs import run_now

ROWS = 60
"""Of each file: with so many a commit takes a while."""
_LEAST = 3
"""Files that are imported, however fast a look is."""


def look_beside_imports(ws: Workspace, looks: int) -> int:
    """Look so many times, and go on until three files were imported, one after the other; how many were.

    Raises ``AssertionError`` where a look finds anything.
    """
    enough, imported = Event(), list[str]()

    def keep_importing() -> None:
        while not enough.is_set():
            count = len(imported)
            rows = ((f"01/{1 + n % 28:02d}/2025", f"SHOP {count} {n:02d}", "-1.00") for n in range(ROWS))
            ws.drop(f"{count}.csv", chase(*rows))
            assert run_now(open_workspace(ws.root), "ingest").status == "succeeded"
            imported.append(f"{count}.csv")

    with ThreadPoolExecutor(1) as pool:
        importing = pool.submit(keep_importing)
        try:
            looked = 0
            while looked < looks or len(imported) < _LEAST:
                assert find_violations(open_workspace(ws.root)) == []
                looked += 1
                if importing.done():
                    break
        finally:
            enough.set()
        importing.result()
        return len(imported)
