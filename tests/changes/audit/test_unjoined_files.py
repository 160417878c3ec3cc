"""What git could not join though no merge is under way, as after ``git stash pop``: named with its place and a remedy
that works."""

from __future__ import annotations

import subprocess

import pytest
from harness import Workspace, refused

JOURNAL = "books/2025/01/journal.csv"
SAID = "git could not join what was changed here with what is committed"


def put_away_and_back(ws: Workspace, path: str) -> None:
    """A change of the last line that is put away, another one that is committed, and the first one again."""
    before = ws.read(path)
    ws.put(".git/info/attributes", "* !merge\n")
    ws.put(path, before + "mine\n")
    ws.git("stash", "-q")
    ws.put(path, before + "theirs\n")
    ws.git("commit", "-qam", "by hand")
    ws.git("stash", "pop", "-q", check=False)
    assert ws.git("ls-files", "-u")


def do_as_told(ws: Workspace, remedy: str, words: str) -> None:
    """Type the command of a remedy that begins with these words."""
    typed = words + remedy.split(words, 1)[1].split(" (", 1)[0].rstrip(".").split(";")[0]
    subprocess.run(["sh", "-c", typed], cwd=ws.root, check=True, capture_output=True)


@pytest.mark.parametrize("as_committed", [False, True])
def test_a_managed_file_is_named_by_check_and_status_and_refused_by_a_run(
    posted: Workspace, as_committed: bool
) -> None:
    put_away_and_back(posted, JOURNAL)
    if as_committed:
        posted.put(JOURNAL, posted.git("show", f"HEAD:{JOURNAL}"))
    else:
        refused(posted("agent", "run", "ingest"), 4, f"{JOURNAL}: {SAID}", "git checkout HEAD -- ")
        assert f"{JOURNAL}: {SAID}" in posted("doctor").out
    assert f"{JOURNAL}: {SAID}" in str(posted.json("status")["trouble"])
    [violation] = [each for each in posted("check", "--json").json["violations"] if SAID in each["message"]]
    assert violation["place"] == JOURNAL
    do_as_told(posted, violation["remedy"], "git checkout HEAD")
    assert not posted.git("ls-files", "-u")
    assert SAID not in posted("check").out + str(posted.json("status")["trouble"])


def test_a_file_that_is_gone_is_named_with_what_takes_it_away(posted: Workspace) -> None:
    path = "books/old.csv"
    posted.put(path, "a\n")
    posted.git("add", path)
    posted.git("commit", "-qm", "by hand")
    posted.put(path, "b\n")
    posted.git("stash", "-q")
    posted.git("rm", "-q", path)
    posted.git("commit", "-qm", "by hand")
    posted.git("stash", "pop", "-q", check=False)
    [violation] = [each for each in posted("check", "--json").json["violations"] if SAID in each["message"]]
    do_as_told(posted, violation["remedy"], "git rm")
    assert not posted.git("ls-files", "-u") and SAID not in posted("check").out


@pytest.mark.parametrize("index_version", ["2", "4"])
def test_a_file_that_people_edit_is_named_and_holds_up_no_run(posted: Workspace, index_version: str) -> None:
    posted.put("notes 1.txt", "a\n")
    posted.git("add", "-A")
    posted.git("commit", "-qm", "notes")
    put_away_and_back(posted, "notes 1.txt")
    posted.git("update-index", "--index-version", index_version)
    [line] = [each for each in posted.json("status")["trouble"] if SAID in each]
    assert line.startswith("notes 1.txt: ") and "git add 'notes 1.txt'" in line
    assert f"notes 1.txt: {SAID}" in posted("doctor").out
    posted.ok("check")
    posted.ok("agent", "run", "ingest")
    do_as_told(posted, line, "git add")
    assert SAID not in str(posted.json("status")["trouble"])


@pytest.mark.parametrize("is_merge", [False, True])
def test_a_file_is_named_as_well_where_the_index_is_in_two_files(posted: Workspace, is_merge: bool) -> None:
    """What could not be joined lies in the other one then."""
    posted.git("config", "core.splitIndex", "true")
    posted.git("config", "splitIndex.maxPercentChange", "0")
    if is_merge:
        branch, before = posted.git("branch", "--show-current").strip(), posted.read(JOURNAL)
        posted.put(".git/info/attributes", "* !merge\n")
        for name in ("one", "two"):
            posted.git("checkout", "-q", "-b", name, branch)
            posted.put(JOURNAL, f"{before}{name}\n")
            posted.git("commit", "-qam", "by hand")
        posted.git("merge", "-q", "one", check=False)
    else:
        put_away_and_back(posted, JOURNAL)
    said = "two clones have both written here" if is_merge else SAID
    assert list((posted.root / ".git").glob("sharedindex.*")) and JOURNAL in posted.git("ls-files", "-u")
    split = [each for each in posted("check", "--json").json["violations"] if said in each["message"]]
    assert [each["place"] for each in split] == [JOURNAL]
    posted.git("update-index", "--no-split-index")
    assert [each for each in posted("check", "--json").json["violations"] if said in each["message"]] == split
