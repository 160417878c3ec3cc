"""What a commit adds to lies in a file of a month; one file of all months, as earlier versions wrote it, is read, too,
and never written."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace, chase
from statement_files import MONTH, write_chase, write_ofx
from synced import follow, part

from cleared.changes.record_sources import CommittedSource

ROWS = [("01/09/2025", "AWS EMEA", "-45.10"), ("01/10/2025", "COFFEE", "-4.50"), ("01/11/2025", "TEA", "-3.00")]


def import_rows(ws: Workspace, name: str, *rows: tuple[str, str, str]) -> None:
    ws.drop(name, chase(*rows))
    ws.run("ingest")


def write_as_before(ws: Workspace, name: str, *, columns: int) -> str:
    """What is in the file of this month stands in one of all months, as an earlier version wrote it; its text."""
    (now,) = ws.root.glob(f"books/bank/{name}-*.csv")
    text = "".join(",".join(line.split(",")[:columns]) + "\n" for line in now.read_text().splitlines())
    now.unlink()
    ws.put(f"books/bank/{name}.csv", text)
    ws.commit("books/bank")
    return text


def read_lines(ws: Workspace, path: str) -> list[str]:
    return ws.read(path).splitlines()[1:]


def test_rows_that_were_known_are_listed_by_the_month_of_their_import(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_rows(ws, "a.csv", *ROWS[:2])
    import_rows(ws, "b.csv", *ROWS)
    february = ws.read("books/bank/duplicates-2025-02.csv")
    monkeypatch.setenv("CLEARED_CLOCK", "2025-03-10T06:00:00Z")
    import_rows(ws, "c.csv", *ROWS, ("03/03/2025", "CAKE", "-2.00"))
    assert len(february.splitlines()) == 3 and ws.read("books/bank/duplicates-2025-02.csv") == february
    assert len(read_lines(ws, "books/bank/duplicates-2025-03.csv")) == 3
    assert not (ws.root / "books/bank/duplicates.csv").exists()
    ws.in_order()


def test_what_an_earlier_version_listed_as_known_stays_so(ws: Workspace) -> None:
    """By it a line stays while a file that said it again is not taken back."""
    import_rows(ws, "a.csv", *ROWS[:2])
    import_rows(ws, "b.csv", *ROWS)
    text = write_as_before(ws, "duplicates", columns=4)
    import_rows(ws, "c.csv", ROWS[2])
    done = ws.json("import", "undo", "a.csv")
    assert (len(done["lines"]), len(done["kept"])) == (0, 2)
    done = ws.json("import", "undo", "b.csv")
    assert (len(done["lines"]), len(done["kept"])) == (2, 1), "a file of this version has said the third again"
    assert ws.read("books/bank/duplicates.csv") == text
    assert len(read_lines(ws, "books/bank/duplicates-2025-02.csv")) == 1


def test_an_id_of_the_bank_that_came_later_is_known_from_either_file(ws: Workspace) -> None:
    ws.ok("config", "set", "bank_accounts.checking.match.account", "1234567890")
    for name, text in (("chase.csv", write_chase(MONTH)), ("bank.ofx", write_ofx(MONTH))):
        ws.drop(name, text)
        ws.run("ingest")
    text = write_as_before(ws, "duplicates", columns=5)
    ws.drop("revised.ofx", write_ofx(MONTH).replace("-45.10", "-45.90"))
    ws.run("ingest")
    assert "revision" in {card["kind"] for card in ws.cards()}
    assert ws.read("books/bank/duplicates.csv") == text


def test_rows_that_were_known_here_are_listed_beside_those_of_others(ws: Workspace, tmp_path: Path) -> None:
    import_rows(ws, "a.csv", *ROWS[:2])
    two = follow(ws, tmp_path)
    import_rows(two[1], "theirs.csv", *ROWS)
    _, other = part(two)
    import_rows(ws, "mine.csv", *ROWS, ("02/05/2025", "CAKE", "-2.00"))
    ws.ok("sync")
    assert len(read_lines(other, "books/bank/duplicates-2025-02.csv")) == 2
    assert len(read_lines(ws, "books/bank/duplicates-2025-02.csv")) == 5
    ws.in_order()


@pytest.mark.parametrize(("name", "columns"), [("imports", 12), ("duplicates", 4)])
def test_a_month_that_an_earlier_version_began_goes_on_in_the_shape_of_this_one(
    ws: Workspace, name: str, columns: int
) -> None:
    """Fault: rows of another width than the file's header were added, and nothing could be read any more."""
    import_rows(ws, "a.csv", *ROWS[:2])
    import_rows(ws, "b.csv", *ROWS)
    (file,) = ws.root.glob(f"books/bank/{name}-*.csv")
    path = file.relative_to(ws.root).as_posix()
    now = ws.read(path)
    ws.put(path, "".join(",".join(line.split(",")[:columns]) + "\n" for line in now.splitlines()))
    ws.ok("accept", ws.commit(path), "--reason", "an earlier version wrote it")
    import_rows(ws, "c.csv", *ROWS, ("01/14/2025", "CAKE", "-2.00"))
    assert ws.read(path).splitlines()[0] == now.splitlines()[0]
    assert {line.count(",") for line in ws.read(path).splitlines()} == {columns}
    ws.in_order()
    assert len(ws.json("import", "undo", "c.csv")["lines"]) == 1


def test_what_was_added_to_a_month_of_an_earlier_version_is_done_again(ws: Workspace, tmp_path: Path) -> None:
    import_rows(ws, "a.csv", *ROWS[:2])
    import_rows(ws, "b.csv", *ROWS)
    for name, columns in (("imports", 12), ("duplicates", 4)):
        path = f"books/bank/{name}-2025-02.csv"
        ws.put(path, "".join(",".join(line.split(",")[:columns]) + "\n" for line in ws.read(path).splitlines()))
        ws.ok("accept", ws.commit(path), "--reason", "an earlier version wrote it")
    _, other = part(follow(ws, tmp_path))
    import_rows(ws, "mine.csv", *ROWS, ("02/05/2025", "CAKE", "-2.00"))
    assert not any(step["left_out"] for step in ws.json("sync")["steps"])
    other.ok("sync")
    for each in (ws, other):
        assert len(read_lines(each, "books/bank/imports-2025-02.csv")) == 4
        assert len(read_lines(each, "books/bank/duplicates-2025-02.csv")) == 5
        each.in_order()


@pytest.mark.parametrize("damage", [",note\n", "", "\n\n"])
def test_nothing_is_added_to_a_month_that_is_no_such_file(ws: Workspace, damage: str) -> None:
    """With a column that this version does not know, without the end of its last line, or with blank lines at its end.
    Fault: a check did not read it."""
    import_rows(ws, "a.csv", *ROWS[:2])
    import_rows(ws, "b.csv", *ROWS)
    path = "books/bank/duplicates-2025-02.csv"
    text = ws.read(path)
    wrong = text.replace("\n", damage) if damage == ",note\n" else text[:-1] + damage
    ws.put(path, wrong)
    ws.ok("accept", ws.commit(path), "--reason", "x")
    checked = ws("check")
    assert checked.code == 1 and f"[format] {path}:" in checked.out
    ws.drop("c.csv", chase(*ROWS, ("01/14/2025", "CAKE", "-2.00")))
    done = ws("agent", "run", "ingest")
    assert done.code == 1 and f"{path}:" in done.err and "Restore it: git checkout" in done.err
    assert ws.read(path) == wrong


# -- what became of lines --------------------------------------------------------------------------------------------

HOLD = (
    'for t in importer_parse("{}"):\n'
    '    queue_add_review(t["reference"], "what was this?")\n'
    'importer_mark_processed("{}")["new"]'
)
IGNORE = HOLD.replace("queue_add_review", "importer_ignore")


def set_aside(ws: Workspace, name: str, *rows: tuple[str, str, str], body: str = HOLD) -> list[str]:
    """The cards of bank lines that no entry posts."""
    ws.drop(name, chase(*rows))
    ws.script(body.format(name, name))
    return [card["id"] for card in ws.cards() if card["kind"] == "line"]


def say_outcomes(ws: Workspace, path: str) -> list[str]:
    return [row.split(",")[1] for row in read_lines(ws, path)]


def test_what_became_of_a_line_is_in_the_file_of_its_month(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it became that."""
    first, _ = set_aside(ws, "a.csv", ROWS[0], ("02/03/2025", "CAKE", "-2.00"))
    monkeypatch.setenv("CLEARED_CLOCK", "2025-03-10T06:00:00Z")
    ws.ok("queue", "answer", first, "ignore")
    assert say_outcomes(ws, "books/bank/outcomes-2025-01.csv") == ["held", "ignored"]
    assert say_outcomes(ws, "books/bank/outcomes-2025-02.csv") == ["held"]
    assert not (ws.root / "books/bank/outcomes.csv").exists()
    ws.in_order()


def test_what_an_earlier_version_said_of_a_line_holds_until_something_else_became_of_it(ws: Workspace) -> None:
    first, second = set_aside(ws, "a.csv", *ROWS[:2])
    text = write_as_before(ws, "outcomes", columns=4)
    assert {card["id"] for card in ws.cards() if card["kind"] == "line"} == {first, second}
    messages = [each["message"] for each in ws("check", "--json").json["violations"]]
    assert not any("nobody set it aside" in each for each in messages), messages
    ws.ok("queue", "answer", first, "ignore")
    assert ws.read("books/bank/outcomes.csv") == text
    assert say_outcomes(ws, "books/bank/outcomes-2025-01.csv") == ["ignored"]
    import_rows(ws, "more.csv", ROWS[2])
    assert ws.read("books/bank/outcomes.csv") == text
    messages = [each["message"] for each in ws("check", "--json").json["violations"]]
    assert not any("nobody set it aside" in each or "no card asks" in each for each in messages), messages


def test_a_line_that_was_taken_back_before_comes_again(ws: Workspace) -> None:
    """Its outcome is in the file of all months, and goes on being read where an import was ever taken back."""
    import_rows(ws, "a.csv", *ROWS)
    ws.ok("import", "undo", "a.csv")
    text = write_as_before(ws, "outcomes", columns=4)
    assert {row.split(",")[1] for row in text.splitlines()[1:]} == {"released"}
    ws.drop("a.csv", chase(*ROWS))
    assert ws.run("ingest")["result"]["imported"] == 3
    ws.ok("import", "undo", "a.csv")
    assert say_outcomes(ws, "books/bank/outcomes-2025-01.csv") == ["released"] * 3
    ws.drop("a.csv", chase(*ROWS))
    assert ws.run("ingest")["result"]["imported"] == 3
    assert ws.read("books/bank/outcomes.csv") == text


def test_an_outcome_in_the_file_of_another_month_is_refused(ws: Workspace) -> None:
    """No run would look there. So is one of a line that there is not."""
    set_aside(ws, "a.csv", *ROWS[:2])
    ws.in_order()
    header, *rows = ws.read("books/bank/outcomes-2025-01.csv").splitlines(keepends=True)
    ws.put("books/bank/outcomes-2025-03.csv", header + rows[0] + rows[0].replace("f1:", "f1:0", 1))
    ws.commit("books/bank")
    of_file = [each for each in ws("check", "--json").json["violations"] if "outcomes-2025-03" in str(each["place"])]
    unknown = rows[0].split(",")[0].replace("f1:", "f1:0")
    assert {each["message"] for each in of_file} == {
        "what became of the bank line of 2025-01-09 is not in the file of its month, where runs look",
        f"what became of the bank line {unknown} is there, which is not recorded",
    }


def test_a_damaged_outcome_of_a_month_is_told(ws: Workspace) -> None:
    set_aside(ws, "a.csv", *ROWS[:2])
    path = "books/bank/outcomes-2025-01.csv"
    ws.put(path, ws.read(path) + "x,y\n")
    ws.commit(path)
    done = ws("check")
    assert done.code == 1 and f"{path}:4" in done.out + done.err


def test_what_became_of_lines_in_two_clones_is_joined(ws: Workspace, tmp_path: Path) -> None:
    cards = set_aside(ws, "a.csv", *ROWS[:2])
    _, other = part(follow(ws, tmp_path))
    other.ok("queue", "answer", cards[1], "ignore")
    other.ok("sync")
    ws.ok("queue", "answer", cards[0], "ignore")
    ws.ok("sync")
    assert say_outcomes(ws, "books/bank/outcomes-2025-01.csv") == ["held", "held", "ignored", "ignored"]
    ws.in_order()


def test_a_run_reads_the_outcomes_of_the_months_it_looks_at(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    for month in range(1, 10):
        set_aside(ws, f"{month}.csv", (f"{month:02d}/03/2024", "CAKE", f"-{month}.00"), body=IGNORE)
    files = {each.name for each in ws.root.glob("books/bank/outcomes*.csv")}
    assert len(files) == 9
    read: list[str] = []
    original = CommittedSource.read

    def note(source: CommittedSource, path: str) -> bytes | None:
        read.append(path.rpartition("/")[2])
        return original(source, path)

    monkeypatch.setattr(CommittedSource, "read", note)
    import_rows(ws, "a.csv", *ROWS)
    assert files.isdisjoint(read)
    monkeypatch.undo()
    ws.in_order()


# -- balances that the books agreed with -----------------------------------------------------------------------------


def test_a_balance_that_was_met_is_in_the_file_of_the_month_of_its_day(ws: Workspace) -> None:
    ws.ok("journal", "add", "2024-12-31", "Opening", "1010=1000.00", "3900=-1000.00")
    ws.drop("a.csv", chase(("01/09/2025", "AWS EMEA", "-45.10", "954.90")))
    ws.run("ingest")
    january = ws.read("books/bank/reconciliations-2025-01.csv")
    ws.drop("b.csv", chase(("02/03/2025", "CAKE", "-2.00", "952.90")))
    ws.run("ingest")
    assert ws.read("books/bank/reconciliations-2025-01.csv") == january
    assert len(read_lines(ws, "books/bank/reconciliations-2025-02.csv")) == 1
    ws.in_order()


@pytest.mark.parametrize("state", ["met", "withdrawn"])
def test_a_balance_in_the_file_of_another_month_is_refused(ws: Workspace, state: str) -> None:
    """No run would look there, and ``check`` would take it for the last word."""
    ws.ok("journal", "add", "2024-12-31", "Opening", "1010=1000.00", "3900=-1000.00")
    ws.drop("a.csv", chase(("01/09/2025", "AWS EMEA", "-45.10", "954.90")))
    ws.run("ingest")
    january = ws.read("books/bank/reconciliations-2025-01.csv")
    ws.put("books/bank/reconciliations-2025-03.csv", january.replace(",met,", f",{state},"))
    ws.commit("books/bank")
    ws.ok("accept", "HEAD", "--reason", "as before")
    (told,) = ws("check", "--json").json["violations"]
    assert told["message"] == "a balance of 1010 on 2025-01-09 is not in the file of its month, where runs look"
    assert told["place"] == "books/bank/reconciliations-2025-03.csv"


def test_balances_that_an_earlier_version_met_have_to_hold_and_may_be_withdrawn(ws: Workspace) -> None:
    ws.ok("journal", "add", "2024-12-31", "Opening", "1010=1000.00", "3900=-1000.00")
    ws.drop("a.csv", chase(("01/09/2025", "AWS EMEA", "-45.10", "954.90")))
    ws.run("ingest")
    ws.ok("reconcile", "1010", "--date", "2025-01-20", "--balance", "954.90")
    text = write_as_before(ws, "reconciliations", columns=7)
    ws.ok("accept", "HEAD", "--reason", "as before")
    assert ws.json("status")["accounts"][0]["reconciled"]["date"] == "2025-01-20"
    ws.ok("journal", "add", "2025-01-08", "Cash", "5030=5.00", "1010=-5.00")
    broken = ws("check", "--json").json["violations"]
    assert {each["place"] for each in broken} == {"books/bank/reconciliations.csv"}
    for day in ("2025-01-09", "2025-01-20"):
        ws.ok("reconcile", "1010", "--date", day, "--withdraw", "counted twice")
    ws.in_order()
    assert ws.read("books/bank/reconciliations.csv") == text
    assert len(read_lines(ws, "books/bank/reconciliations-2025-01.csv")) == 2
    assert ws.json("status")["accounts"][0]["reconciled"] is None
