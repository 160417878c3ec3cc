"""Reading what was committed."""

from __future__ import annotations

from pathlib import Path

import pytest
from vcs_samples import CHANGES, WHEN, Work, put

from cleared.base.errors import ExitCode, UsageError, WorkspaceError
from cleared.git import history


def test_log(work: Work) -> None:
    first = work.seal(message="import: 1\n\nOne file.\n\nMore.")
    second = work.seal({"books/*": b"x", "ü": b"y"}, message="two", trailers=[("Run", "r-2"), ("Run", "r-3")])
    newest, older, base = history.read_log(work.root, files=True)
    assert (newest.id, older.id, base.id) == (second, first, work.base)
    assert newest.trailers == {"Run": "r-2\nr-3"}
    assert newest.files == ("books/*", "ü")
    assert second.startswith(newest.short)
    assert (older.subject, older.body) == ("import: 1", "One file.\n\nMore.")
    assert older.trailers == {"Run": "r-1", "Event": "e-1"}
    assert (older.author, older.email, older.when) == ("Ann Lee", "ann@example.com", WHEN)
    assert older.files == tuple(sorted(CHANGES))
    assert base.files is not None
    assert "config.yaml" in base.files
    assert base.trailers == {}
    assert [c.id for c in history.read_log(work.root, 1)] == [second]
    assert history.read_log(work.root, 1)[0].files is None
    assert [c.id for c in history.read_log(work.root, paths=["books/*"])] == [second]
    assert [c.id for c in history.read_log(work.root, grep="[import]")] == []
    assert [c.id for c in history.read_log(work.root, grep="import: 1")] == [first]
    assert [c.id for c in history.read_log(work.root, since=first)] == [second]
    assert history.read_log(work.root, paths=[]) == []
    assert [c.id for c in history.commits_touching(work.root, ["books"], since=work.base)] == [second, first]
    assert history.read_commit(work.root, "main~1") == older
    assert [c.id for c in history.find_by_trailer(work.root, "Run", "r-3")] == [second]
    assert history.find_by_trailer(work.root, "Run", "r-") == []


def test_only_the_last_paragraph_counts(work: Work) -> None:
    work.seal(message="a\n\nRun: forged")
    put(work.root, "other.txt", b"by hand\n")
    work.git("commit", "-q", "-am", "Run: r-9")
    put(work.root, "other.txt", b"by hand again\n")
    work.git("commit", "-q", "-am", "b\n\nRun: r-9\nand more")
    assert history.find_by_trailer(work.root, "Run", "forged") == []
    assert history.find_by_trailer(work.root, "Run", "r-9") == []
    assert len(history.find_by_trailer(work.root, "Run", "r-1")) == 1


def test_merges_empty_commits_and_side_branches(work: Work) -> None:
    work.git("commit", "-q", "--allow-empty", "-m", "empty")
    work.git("checkout", "-q", "-b", "side")
    put(work.root, "books/side.csv", b"x")
    work.git("add", "-A")
    work.git("commit", "-q", "-m", "side")
    work.git("checkout", "-q", "main")
    work.git("merge", "-q", "--no-ff", "-m", "merged", "side")
    found = history.read_log(work.root, files=True)
    files = {c.subject: c.files for c in found}
    assert files["merged"] == files["side"] == ("books/side.csv",)
    assert files["empty"] == ()
    assert "side" in [c.subject for c in history.commits_touching(work.root, ["books/side.csv"])]


def test_no_commit_comes_after_its_parent_whatever_their_dates(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes a commit by hand writes its date, too: what is judged oldest first must not be led by that."""
    ids: dict[str, str] = {}
    for name, year, parents in (
        ("base", 2035, (work.base,)),
        ("early", 2010, ("base",)),
        ("late", 2040, ("base",)),
        ("merge", 2041, ("early", "late")),
    ):
        put(work.root, "books/dated.csv", name.encode())
        work.git("add", "-A")
        tree = work.git("write-tree").strip()
        which = [f"-p{ids.get(parent, parent)}" for parent in parents]
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"{year}-01-01T00:00:00Z")
        ids[name] = work.git("commit-tree", tree, *which, "-m", name).strip()
    work.git("reset", "-q", "--hard", ids["merge"])
    found = [c.subject for c in history.commits_touching(work.root, ["books/dated.csv"])]
    assert found.index("base") == 3 and found[0] == "merge", found


def test_a_file_named_like_a_commit(work: Work) -> None:
    first = work.seal()
    work.seal({first: b"x", f"{first}\n{first}": b"y"})
    assert [c.files for c in history.read_log(work.root, 2, files=True)] == [
        (first, f"{first}\n{first}"),
        tuple(sorted(CHANGES)),
    ]


def test_sha256(tmp_path: Path) -> None:
    with Work.make(tmp_path / "w", "--object-format=sha256") as work:
        commit = work.seal()
        assert history.read_log(work.root, 1, files=True)[0].id == commit


@pytest.mark.parametrize("rev", ["nowhere", "--all", "-p", "", "HEAD:config.yaml", "a\0b", "0" * 40])
def test_no_such_commit(work: Work, rev: str) -> None:
    with pytest.raises(UsageError) as caught:
        history.read_commit(work.root, rev)
    assert caught.value.exit_code == ExitCode.USAGE


def test_digits_are_an_id_whatever_tag_is_named_so(work: Work) -> None:
    """Tags come with a pull: one is named like the beginning of a commit's id, and points to another."""
    first = work.seal()
    put(work.root, "other.txt", b"by hand\n")
    work.git("add", "other.txt")
    work.git("commit", "-q", "-m", "another")
    for name in (first, first[:10], first[:10].upper()):
        work.git("tag", name, "HEAD")
        assert history.read_commit(work.root, name).id == first
    work.git("tag", "fade", "HEAD")
    assert history.read_commit(work.root, "fade").id != first, "digits that begin no id name a tag"


def test_unusable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorkspaceError, match="not a git repository"):
        history.read_log(tmp_path)
    with pytest.raises(WorkspaceError, match="not a git repository"):
        history.read_log(tmp_path / "nowhere")


def test_inherited_variables(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = work.seal()
    with Work.make(tmp_path / "other") as other:
        for name, value in {
            "GIT_DIR": other.root / ".git",
            "GIT_WORK_TREE": other.root,
            "GIT_OBJECT_DIRECTORY": other.root / ".git/objects",
            "GIT_NAMESPACE": "x",
            "GIT_CONFIG_PARAMETERS": "'log.showSignature=true'",
            "GIT_ICASE_PATHSPECS": "1",
        }.items():
            monkeypatch.setenv(name, str(value))
        assert history.read_log(work.root, 1, files=True)[0].id == commit
        assert history.read_commit(work.root, "HEAD").id == commit
        monkeypatch.undo()


def test_no_commit_yet(tmp_path: Path) -> None:
    from cleared.git import Repository

    with Repository.init(tmp_path), pytest.raises(WorkspaceError, match="git log failed"):
        history.read_log(tmp_path)
