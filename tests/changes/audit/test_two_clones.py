"""Two clones of the same books, joined with plain git (fault 21)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import IDENTITY, Workspace, chase, take_ok

FEBRUARY = chase(("02/04/2025", "GITHUB *PRO", "-4.00"), ("02/05/2025", "COFFEE", "-5.50"))
ALSO_FEBRUARY = chase(("02/06/2025", "AWS EMEA", "-41.10"), ("02/07/2025", "BAKERY", "-7.25"))
MARCH = chase(("03/04/2025", "GITHUB *PRO", "-4.00"), ("03/05/2025", "TEA", "-3.20"))

COLLISION = "two clones have both written here, and git cannot join what they wrote"


@pytest.fixture
def clones(posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Workspace, Workspace]:
    """January is posted in both."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    other = tmp_path / "other"
    posted.git("clone", "-q", str(posted.root), str(other))
    take_ok(Workspace(other), "trust", "--yes")
    return posted, Workspace(other)


def book(ws: Workspace, name: str, data: str) -> None:
    ws.drop(name, data)
    ws.run("ingest")


def violations(ws: Workspace) -> list[dict[str, str]]:
    found: list[dict[str, str]] = ws("check", "--json").json["violations"]
    return found


def failures(ws: Workspace) -> dict[str, str]:
    """The rows of ``cleared doctor`` that failed: name → what it says and advises."""
    rows = ws("doctor", "--json").json["checks"]
    return {row["name"]: f"{row['detail']} {row['remedy']}" for row in rows if row["status"] == "fail"}


def test_a_clean_merge_of_different_months_is_in_order_in_both(clones: tuple[Workspace, Workspace]) -> None:
    mine, other = clones
    book(mine, "february.csv", FEBRUARY)
    mine.ok("queue", "approve", mine.cards()[0]["id"])
    book(other, "march.csv", MARCH)
    mine.git("pull", "-q", "--no-rebase", "--no-edit", str(other.root), "HEAD")
    other.git("pull", "-q", "--no-rebase", "--no-edit", str(mine.root), "HEAD")
    for ws in clones:
        assert len(ws.git("log", "-1", "--format=%P").split()) == 2
        ws.in_order()
        assert {e["date"][:7] for e in ws.entries()} == {"2025-01", "2025-02", "2025-03"}


def approve_with_test(ws: Workspace, name: str, path: str) -> None:
    """Have a new agent approved, together with a test that a person wrote after another."""
    ws.put(f"agents/{name}.py", f'"""\nname: {name}\ntrigger: on_demand\n"""\n1\n')
    case = json.loads(ws.read(path)) | {"why": f"written for {name}"}
    ws.put(f"tests/cases/{name}.json", json.dumps(case))
    proposed = ws.json("agent", "propose", name, f"tests/cases/{name}.json")
    take_ok(ws, "agent", "approve", proposed["id"])


@pytest.mark.slow
def test_each_clone_works_on_its_month_and_approves_and_git_joins_all_of_it(
    posted: Workspace, tmp_path: Path, clones: tuple[Workspace, Workspace]
) -> None:
    """Tests and their approvals are a file each: an import, a correction, a run that becomes a test, an approved
    proposal with a test, in each clone. So is what the corrections of one run say of two months."""
    mine, other = clones
    book(mine, "winter.csv", chase(("01/30/2025", "BAKERY", "-3.00"), ("02/01/2025", "KIOSK", "-2.00")))
    other.git("pull", "-q", "--ff-only", str(mine.root), "HEAD")
    for ws, name, month, line in ((mine, "february", FEBRUARY, "KIOSK"), (other, "march", MARCH, "BAKERY")):
        book(ws, f"{name}.csv", month)
        case = ws.json("test", "add", ws.json("run", "list")[0]["run_id"], "-m", f"{name} is right")
        approve_with_test(ws, name, case["path"])
        wrong = next(e["entry_id"] for e in ws.entries() if e["description"] == line)
        ws.ok("queue", "correct", wrong, "--account", "5070")
    mine.git("pull", "-q", "--no-rebase", "--no-edit", str(other.root), "HEAD")
    other.git("pull", "-q", "--ff-only", str(mine.root), "HEAD")
    for ws in clones:
        ws.in_order()
        tests = {test["name"]: test["state"] for test in ws.json("test", "list")}
        assert len(tests) == 6 and set(tests.values()) == {"approved"}, tests
        assert {"february", "march"} < set(tests)
        assert failures(ws) == {}
    mine.put("agents/april.py", '"""\nname: april\ntrigger: on_demand\n"""\n1\n')
    take_ok(mine, "agent", "approve", mine.json("agent", "propose", "april")["id"])
    mine.in_order()


@pytest.mark.parametrize("how", ["--no-rebase", "--rebase"])
def test_doctor_check_and_commands_say_the_same_of_a_collision(clones: tuple[Workspace, Workspace], how: str) -> None:
    mine, other = clones
    book(mine, "february.csv", FEBRUARY)
    book(other, "also.csv", ALSO_FEBRUARY)
    mine.git("pull", "-q", how, str(other.root), "HEAD", check=False)
    found = violations(mine)
    assert {(v["check"], v["message"]) for v in found} == {("provenance", COLLISION)}
    [remedy] = {v["remedy"] for v in found}
    said = [mine("agent", "run", "ingest").err, mine("queue", "approve", mine.cards()[0]["id"]).err]
    failed = failures(mine)
    assert failed.keys() >= {"repository", "managed files"}
    for text in [*said, *failed.values()]:
        assert COLLISION in text and remedy in text, text
        assert "git checkout --" not in text and "--continue" not in text and "recover" not in text


def test_they_say_the_same_of_a_merge_that_is_not_committed(clones: tuple[Workspace, Workspace]) -> None:
    """Nothing collides: it is to be finished or given up, and no file is to be restored."""
    mine, other = clones
    book(mine, "february.csv", FEBRUARY)
    book(other, "march.csv", MARCH)
    mine.git("pull", "-q", "--no-rebase", "--no-commit", str(other.root), "HEAD")
    [found] = violations(mine)
    assert found["message"] == "the repository is in the middle of a merge"
    for text in [
        mine("agent", "run", "ingest").err,
        *(
            f"{row['detail']} {row['remedy']}"
            for row in mine("doctor", "--json").json["checks"]
            if row["status"] == "fail"
        ),
    ]:
        assert found["message"] in text and found["remedy"] in text, text
    mine.git("commit", "-q", "--no-edit")
    mine.in_order()


def test_a_merge_that_changes_something_itself_is_named(clones: tuple[Workspace, Workspace]) -> None:
    """An amount that neither clone had."""
    mine, other = clones
    book(mine, "february.csv", FEBRUARY)
    book(other, "march.csv", MARCH)
    mine.git("pull", "-q", "--no-rebase", "--no-commit", str(other.root), "HEAD")
    path = mine.root / "books/2025/02/journal.csv"
    path.write_text(path.read_text().replace("COFFEE", "DINNER"))
    mine.git("commit", "-q", "-a", "-m", "Merge")
    found = [v for v in violations(mine) if v["check"] == "provenance"]
    assert {v["place"] for v in found} == {"books/2025/02/journal.csv"}
    assert any("added what neither had: " in v["message"] and "DINNER" in v["message"] for v in found)
    assert any("lost " in v["message"] and "COFFEE" in v["message"] for v in found)
    take_ok(mine, "recover", "--forget")
    merge = mine.git("log", "-1", "--merges", "--format=%H").strip()
    mine.ok("accept", merge, "--reason", "it was dinner")
    assert [v for v in violations(mine) if v["check"] == "provenance"] == []


@pytest.mark.parametrize("strategy", [["-s", "ours"], ["-X", "ours"]])
def test_a_merge_that_drops_one_side_is_named(clones: tuple[Workspace, Workspace], strategy: list[str]) -> None:
    mine, other = clones
    book(mine, "february.csv", FEBRUARY)
    book(other, "also.csv", ALSO_FEBRUARY)
    mine.git("pull", "-q", "--no-rebase", "--no-edit", *strategy, str(other.root), "HEAD")
    found = [v for v in violations(mine) if "merged two clones, and lost" in v["message"]]
    assert "books/2025/02/journal.csv" in {v["place"] for v in found}
    assert all("docs/howto/two-clones.md" in v["remedy"] for v in found)


def test_a_merge_that_collides_is_named_while_it_is_under_way(clones: tuple[Workspace, Workspace]) -> None:
    mine, other = clones
    book(mine, "february.csv", FEBRUARY)
    book(other, "also.csv", ALSO_FEBRUARY)
    mine.git("pull", "-q", "--no-rebase", str(other.root), "HEAD", check=False)
    [found] = violations(mine)
    assert (found["check"], found["place"]) == ("provenance", "books/2025/02/journal.csv")
    assert "two clones have both written here" in found["message"]
    assert "git merge --abort" in found["remedy"] and "docs/howto/two-clones.md" in found["remedy"]
    done = mine("agent", "run", "ingest")
    assert done.code == 4 and "in the middle of a merge" in done.err, done


def test_ids_that_both_gave_are_named_where_both_were_kept(clones: tuple[Workspace, Workspace]) -> None:
    """Somebody has joined by hand what git could not."""
    mine, other = clones
    book(mine, "february.csv", FEBRUARY)
    book(other, "also.csv", ALSO_FEBRUARY)
    mine.git("pull", "-q", "--no-rebase", str(other.root), "HEAD", check=False)
    path = mine.root / "books/2025/02/journal.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith(("<<<<<<<", "=======", ">>>>>>>"))))
    mine.git("commit", "-q", "-a", "-m", "Merge")
    found = [v for v in violations(mine) if v["check"] == "ids"]
    assert found and all("docs/howto/two-clones.md" in v["remedy"] for v in found), violations(mine)
