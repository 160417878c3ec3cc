"""Whoever can push damages a file that commands read: each says where, and what it tells one to type brings it back."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from harness import IDENTITY, Workspace, refused, take_ok
from proposing import propose, threshold

CHART = "accounts/chart-of-accounts.csv"
APPROVALS = "agents/approvals"


def type_remedy(ws: Workspace, remedy: str) -> None:
    """What a check says of a damaged file, typed as it stands."""
    typed = remedy.split("Restore it: ", 1)[1].split(", and commit that")[0]
    subprocess.run(["sh", "-c", typed], cwd=ws.root, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("path", "text", "argv"),
    [
        (CHART, "x,y\n", ["accounts", "add", "6001", "New", "--type", "expense"]),
        (CHART, None, ["accounts", "rename", "5020", "New"]),
        ("queue", "{\n", ["queue", "list"]),
    ],
)
def test_what_the_refusal_says_brings_it_back(posted: Workspace, path: str, text: str | None, argv: list[str]) -> None:
    if path == "queue":
        (path,) = (name for name in posted.git("ls-files", "queue").split() if name.endswith(".jsonl"))
    before = posted.read(path)
    (posted.root / path).unlink() if text is None else posted.put(path, before + text if path != CHART else text)
    posted.git("commit", "-qam", "push")
    told = posted(*argv)
    refused(told, 4, path, "git checkout HEAD -- ", "where it was committed so, cleared check names the version")
    (remedy,) = (each["remedy"] for each in posted("check", "--json").json["violations"] if each["check"] == "format")
    type_remedy(posted, remedy)
    assert posted.read(path) == before
    posted.git("commit", "-qam", "brought back")
    posted.ok(*argv)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.json", "{}"),
        ("config.json", '"by": "somebody",'),
        ("config.json", None),
        ("workspace", None),
        ("agents/ingest/*.json", "torn"),
        ("agents/ingest/*.py", "torn"),
        ("tests/cases/*.json", "torn"),
    ],
)
def test_a_check_names_an_approval_that_somebody_has_damaged(posted: Workspace, name: str, text: str | None) -> None:
    """And what it tells one to type brings it back, whatever a run has committed since."""
    threshold(posted)
    take_ok(posted, "agent", "approve", propose(posted, "ingest")["id"])
    posted.ok("test", "add", posted.json("run", "list")[0]["run_id"])
    (path,) = posted.git("ls-files", f"{APPROVALS}/{name}").split()
    before = posted.read(path)
    if text is None:
        (posted.root / path).unlink()
    else:
        posted.put(path, re.sub(r'"by": .*', text, before) if "by" in text else text)
    posted.git("commit", "-qam", "push")
    posted("agent", "run", "review_reminder")
    told = posted("check", "--json")
    (violation,) = told.json["violations"]
    assert (told.code, violation["check"], violation["place"]) == (1, "approval", path)
    type_remedy(posted, violation["remedy"])
    assert posted.read(path) == before
    posted.git("commit", "-qam", "brought back")
    posted.ok("check")
    posted.ok("agent", "run", "ingest")


def test_a_check_says_how_these_are_the_same_books_again(posted: Workspace) -> None:
    path = f"{APPROVALS}/workspace"
    before = posted.read(path)
    posted.put(path, "torn")
    posted.git("commit", "-qam", "push")
    (violation,) = posted("check", "--json").json["violations"]
    assert (violation["check"], violation["place"]) == ("approval", path)
    typed = violation["remedy"].split("Bring the file back as it was: ")[1].rstrip(".")
    subprocess.run(["sh", "-c", typed], cwd=posted.root, check=True, capture_output=True, env=os.environ | IDENTITY)
    assert posted.read(path) == before
    posted.ok("check")


def test_an_older_approval_of_the_settings_is_no_damage(posted: Workspace) -> None:
    """Nothing runs by it, and the command says why; it is as another clone of this machine has it that lags behind."""
    path = f"{APPROVALS}/config.json"
    older = posted.read(path)
    posted.ok("config", "set", "thresholds.auto_confirm", "0.97")
    take_ok(posted, "config", "approve")
    posted.put(path, older)
    posted.git("commit", "-qam", "push")
    refused(posted("agent", "run", "ingest"), 3, "older than the last")
    posted.ok("check")


@pytest.mark.parametrize("name", ["imports-2025-02.csv", "receipts.csv", "matches-2025-01.csv"])
def test_a_check_names_the_version_of_a_damaged_file_of_the_bank(posted: Workspace, name: str) -> None:
    """Though the last commits have it damaged, and runs alone read it."""
    posted.put("r.txt", "a receipt")
    posted.ok("receipt", "add", str(posted.root / "r.txt"))
    path = f"books/bank/{name}"
    before = posted.read(path)
    for text in ("torn\n", "torn again\n"):
        posted.put(path, before + text)
        posted.git("commit", "-qam", "push")
    (remedy,) = {each["remedy"] for each in posted("check", "--json").json["violations"] if each["check"] == "format"}
    type_remedy(posted, remedy)
    assert posted.read(path) == before
    posted.git("commit", "-qam", "brought back")
    assert "[format]" not in posted("check").out


@pytest.mark.parametrize(
    ("path", "also"),
    [
        (CHART, ". Or mend that line"),
        ("books/2025/01/journal.csv", ""),
        ("receipts/", ""),
        ("state/watcher.json", ". Or delete it in a commit: the agent begins anew then"),
    ],
)
def test_each_kind_of_damaged_file_has_the_same_remedy(posted: Workspace, path: str, also: str) -> None:
    """With the version to go back to, and what else may be done."""
    posted.put("r.txt", "a receipt")
    posted.ok("receipt", "add", str(posted.root / "r.txt"))
    posted.put("state/watcher.json", "{}\n")
    right = posted.commit("state/watcher.json")
    (path,) = posted.git("ls-files", path).split()
    posted.put(path, posted.read(path) + "torn\n")
    posted.git("commit", "-qam", "push")
    found = posted("check", "--json").json["violations"]
    (remedy,) = {
        each["remedy"] for each in found if (each["place"] or "").startswith(path) and "Restore" in each["remedy"]
    }
    newest = posted.git("log", "-1", "--format=%h", right, "--", path).strip()
    assert remedy == f"Restore it: git checkout {newest} -- {path}, and commit that{also}"


def test_a_name_that_git_takes_for_a_pattern_brings_back_that_file_alone(posted: Workspace) -> None:
    """Else an older state of all files that the pattern fits would come with it, and decisions would be gone."""
    path = push_queue(posted, "2???-??", "")
    posted.ok("queue", "approve", posted.cards()[0]["id"])
    (posted.root / path).write_text("{\n")
    posted.git("commit", "-qam", "damaged")
    (remedy,) = (each["remedy"] for each in posted("check", "--json").json["violations"] if each["check"] == "format")
    type_remedy(posted, remedy)
    assert posted.git("diff", "--cached", "--name-only").splitlines() == [path]


def test_however_many_files_are_damaged_records_are_judged_as_often_as_for_one(
    posted: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cleared.books.audit.book_audit import BookAudit

    paths = [push_queue(posted, f"2024-{month:02d}", "") for month in range(1, 6)]
    for number in range(30):
        for path in (*paths, CHART):
            posted.put(path, f"{{{number}\n")
        posted.git("commit", "-qam", "push")
    judged, check = list[object](), BookAudit.check_records
    monkeypatch.setattr(BookAudit, "check_records", lambda *args: (judged.append(args), check(*args))[1])
    told = posted("check")
    assert "git log -- " in told.out and len(judged) < 30


def test_an_import_under_a_name_that_is_none_is_taken_back(posted: Workspace) -> None:
    """Nobody keeps its file here: the way to do it again names a place for what its commit has."""
    (run,) = (each["run_id"] for each in posted.json("run", "list"))
    (path,) = posted.git("ls-files", "books/bank/imports-*.csv").split()
    posted.put(path, posted.read(path).replace("january.csv", "."))
    posted.git("rm", "-q", "import/processed/january.csv")
    posted.git("commit", "-qam", "push")
    told = posted("revert", run, "--reason", "wrong", "--yes")
    assert told.code == 0 and "> import/file && " in told.out + told.err


@pytest.mark.parametrize("is_approved", [True, False])
def test_a_test_that_cannot_be_read_is_brought_back_or_taken_out(posted: Workspace, is_approved: bool) -> None:
    path = "tests/cases/pushed.json"
    if is_approved:
        posted.ok("test", "add", posted.json("run", "list")[0]["run_id"])
        (path,) = posted.git("ls-files", "tests/cases/*.json").split()
    posted.put(path, "{\n")
    posted.commit(path)
    told = posted("agent", "check", "ingest")
    assert told.code == 1 and f"{path}: [regression-format]" in told.out + told.err
    remedy = (told.out + told.err).split("[regression-format]", 1)[1]
    if is_approved:
        type_remedy(posted, remedy)
    else:
        out = remedy.split("Where nobody has approved it, take it out: ", 1)[1].split(", and commit that")[0]
        subprocess.run(["sh", "-c", out], cwd=posted.root, check=True, capture_output=True)
    posted.git("commit", "-qm", "brought back")
    posted.ok("agent", "check", "ingest")


@pytest.mark.parametrize("text", ["{\n", "{}\n", None])
def test_a_test_that_is_not_as_approved_comes_back_whoever_committed_last(posted: Workspace, text: str | None) -> None:
    """A commit before the last did the damage."""
    posted.ok("test", "add", posted.json("run", "list")[0]["run_id"])
    (path,) = posted.git("ls-files", "tests/cases/*.json").split()
    before = posted.read(path)
    for each in ("[]\n", text):
        (posted.root / path).unlink() if each is None else posted.put(path, each)
        posted.git("commit", "-qam", "push")
    told = posted("agent", "check", "ingest")
    type_remedy(posted, (told.out + told.err).split("[regression-changed]", 1)[1])
    assert posted.read(path) == before
    posted.git("commit", "-qm", "brought back")
    posted.ok("agent", "check", "ingest")


def test_a_kept_bank_file_comes_back_whoever_committed_last(posted: Workspace) -> None:
    path = "import/processed/january.csv"
    before = posted.read(path)
    for each in ("altered\n", "and again\n"):
        posted.put(path, each)
        posted.git("commit", "-qam", "push")
    told = posted("import", str(posted.root / path))
    refused(told, 3, "nobody on this machine handed it in", "git checkout ", ", and commit that")
    (violation,) = (each for each in posted("check", "--json").json["violations"] if each["check"] == "bank_files")
    type_remedy(posted, violation["remedy"])
    assert posted.read(path) == before
    posted.git("commit", "-qm", "brought back")
    posted.ok("check")


def test_a_link_in_the_place_of_a_file_is_named_with_the_version_before(posted: Workspace) -> None:
    path = "logs/agent-log-2025-02.csv"
    before = posted.read(path)
    (posted.root / path).unlink()
    for target in ("/dev/null", "/dev/zero"):
        (posted.root / path).unlink(missing_ok=True)
        (posted.root / path).symlink_to(target)
        posted.git("commit", "-qam", "push")
    told = posted("queue", "approve", posted.cards()[0]["id"])
    type_remedy(posted, told.err)
    assert posted.read(path) == before


def list_damage(ws: Workspace) -> list[str]:
    """Files that a push may damage: of each kind one."""
    listed = ws.git("ls-files").split()
    ends = (
        CHART,
        "journal.csv",
        "matches-2025-01.csv",
        "agent-log-2025-02.csv",
        ".jsonl",
        "config.json",
        "agents/ingest.py",
    )
    return [path for path in listed if path.endswith(ends)]


def test_a_clone_is_trusted_whatever_is_damaged_in_it(
    posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is damaged is for others to say, and to mend; whose approvals count is not found in it."""
    damaged = list_damage(posted)
    assert len(damaged) > 7 and any(path.startswith("queue/") for path in damaged)
    for path in damaged:
        posted.put(path, posted.read(path) + '{"torn\n')
    posted.git("commit", "-qam", "push")
    posted.git("clone", "-q", ".", str(tmp_path / "clone"))
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "another"))
    clone = Workspace(tmp_path / "clone")
    listed = clone("trust", "--list", "--json").json
    assert [one["runs"] for one in listed] == [True], "the settings' record is damaged, too"
    take_ok(clone, "trust", "--yes")
    assert all(one["trusted"] for one in clone.json("trust", "--list"))


def test_the_status_is_told_with_what_is_damaged(posted: Workspace) -> None:
    (path,) = (name for name in posted.git("ls-files", "queue").split() if name.endswith(".jsonl"))
    posted.put(path, posted.read(path) + "{\n")
    posted.git("commit", "-qam", "push")
    (trouble,) = (line for line in posted.json("status")["trouble"] if path in line)
    assert "a line of the queue is not readable" in trouble and "git checkout" in trouble


@pytest.mark.parametrize("content", [None, "x"])
def test_a_folder_in_the_place_of_a_file_is_moved_out_of_the_way_and_recovered(
    posted: Workspace, content: str | None
) -> None:
    (path,) = (name for name in posted.git("ls-files", "queue").split() if name.endswith(".jsonl"))
    before = posted.read(path)
    posted.git("reset", "-q", "--hard", "HEAD~1")
    (posted.root / path).mkdir()
    if content is not None:
        posted.put(f"{path}/x", content)
    told = posted("recover")
    refused(told, 4, f"{path} cannot be written: it is a folder", "Then run the command again.")
    typed = told.err.split("Move it out of the way: ", 1)[1].split(". Then")[0]
    subprocess.run(["sh", "-c", typed], cwd=posted.root, check=True, capture_output=True)
    posted.ok("recover")
    assert posted.read(path) == before
    assert (posted.root / f"{path}.aside").is_dir()


def push_queue(ws: Workspace, month: str, text: str) -> str:
    """Commit a file of the queue by hand; its path."""
    path = f"queue/{month}.jsonl"
    ws.put(path, text)
    ws.git("add", path)
    ws.git("commit", "-qm", "push")
    return path


def test_halves_of_lines_make_no_card_together(posted: Workspace) -> None:
    """As many events as lines, each between braces; yet the first two lines are one event, and the third is two."""
    card = posted.cards()[0]["id"]
    halves = (
        f'{{"event":"resolve","id":"{card}","at":"2025-01-01T00:00:00Z","by":"me","resolution":"x","more":[{{}}',
        '{}],"last":{}}',
        f'{{"event":"skip","id":"{card}","at":"x","by":"me"}},{{"event":"skip","id":"{card}","at":"y","by":"me"}}',
    )
    path = push_queue(posted, "2024-12", "\n".join(halves) + "\n")
    refused(posted("queue", "list"), 4, f"{path}:1: a line of the queue is not readable", "git checkout")
    told = posted("check")
    assert told.code == 1 and f"{path}:1: " in told.out and "is settled" not in told.out


def test_a_line_that_is_nested_too_deeply_holds_up_nothing_once_it_is_mended(posted: Workspace) -> None:
    path = push_queue(posted, "2024-07", '{"event":"open","id":' + "[" * 100_000 + "\n")
    assert f"{path}:1: " in posted("check").out
    posted.put(path, "")
    posted.git("commit", "-qam", "mended")
    assert len(posted.json("queue", "list")) == 2
    told = posted("check")
    assert "too deeply" not in told.err and "without a run or a decision" in told.out


@pytest.mark.parametrize("line", ["{}", "[]", '{"event":"resolve","id":[]}', '{"event":"open"}', "[" * 100_000])
def test_a_damaged_line_of_an_old_month_is_named(posted: Workspace, line: str) -> None:
    """Where files of the queue are many, what old ones hold is kept."""
    for month in ("2024-08", "2024-09", "2024-10"):
        push_queue(posted, month, "")
    path = push_queue(posted, "2024-07", f"{line}\n")
    refused(posted("queue", "list"), 4, f"{path}:1: a line of the queue is not readable", "git checkout")
    assert f"{path}:1: " in posted("check").out
