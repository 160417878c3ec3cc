"""Bank files whose names no script could be given, though a file system takes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace, chase, refused

ROWS = chase(("01/10/2025", "GITHUB *PRO", "-4.00", "996.00"))
ODD = {
    " a.csv": "a.csv",
    "a.csv ": "a.csv",
    "a.": "a",
    ".a.csv": "a.csv",
    "~a.csv": "a.csv",
    " ~.a.csv": "a.csv",
    "c:a.csv": "c-a.csv",
    "CON.csv": "file-CON.csv",
    "a\\b.csv": "a-b.csv",
    "a\nb\tc.csv": "a-b-c.csv",
    "a\u202eb.csv": "a-b.csv",
    "a\udcff.csv": "a-.csv",
    "~": "file",
    "…" * 60 + ".csv": "…" * 38 + ".csv",
}


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_a_file_with_an_odd_name_is_imported_under_the_nearest_that_can_be_read(
    ws: Workspace, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_text(ROWS)
    done = ws.ok("import", str(path))
    assert f"import/{ODD[name]}  chase_checking" in done.out
    assert (ws.root / "import/processed" / ODD[name]).read_text() == ROWS and path.exists()
    assert len(ws.entries()) == 1
    ws.in_order()


def test_two_files_that_would_get_one_name_are_refused_with_both_names(ws: Workspace, tmp_path: Path) -> None:
    files = [tmp_path / " a.csv", tmp_path / "a.csv ", tmp_path / "b" / " a.csv"]
    files[2].parent.mkdir()
    for path in files:
        path.write_text(ROWS)
    told = ws("import", *map(str, files[:2]))
    refused(told, 2, "' a.csv' and 'a.csv ' would have the same name once made plain, 'a.csv'", "Rename one of them.")
    refused(ws("import", str(files[0]), str(files[2])), 2, "two of the files have the same name", "one after the other")
    assert not ws.entries()


@pytest.mark.parametrize("name", ["a.csv.part", "a.csv~", "a.tmp"])
def test_a_file_that_nothing_would_read_is_refused_at_once(ws: Workspace, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(ROWS)
    done = ws("import", str(tmp_path / name))
    assert done.code == 1 and "was not imported: its name is that of a file which" in done.err
    assert "rename it" in done.err and not list((ws.root / "import").glob("a*"))


@pytest.mark.parametrize("name", ["~a.csv", "c:a.csv", "a\\b.csv", "a\u202eb.csv"])
def test_what_lies_in_import_under_such_a_name_is_refused_with_what_to_do(ws: Workspace, name: str) -> None:
    ws.drop(name, ROWS)
    ws.drop("good.csv", chase(("01/12/2025", "AWS EMEA", "-1.00", "995.00")))
    assert "Rename the file." in ws.ok("agent", "run", "ingest").err
    assert len(ws.entries()) == 1, "one file of that kind does not stop the others"
    (ws.root / "import" / name).rename(ws.root / "import" / "renamed.csv")
    ws.run("ingest")
    assert len(ws.entries()) == 2
    ws.in_order()
