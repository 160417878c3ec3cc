"""With another home than that in which a clone was used nothing runs or signs, and no key is made (fault 19)."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest
from harness import Workspace, here, refused, take_ok, unchanged

from cleared.workspace.location import cleared_home

COMMANDS = (
    ("agent", "run", "ingest"),
    ("journal", "add", "2025-01-31", "x", "5220=1", "1590=-1"),
    ("queue", "approve", "2025-01-002"),
    ("config", "set", "sandbox.timeout", "20"),
    ("config", "approve"),
    ("agent", "propose", "ingest"),
    ("agent", "disable", "ingest"),
    ("period", "close", "2025-01"),
    ("task", "init"),
    ("queue", "reviewers"),
)


@pytest.fixture
def homes(posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The home in which the books were used, and another, which is what ``HOME`` says from now on."""
    used, other = tmp_path / "home", tmp_path / "another"
    other.mkdir()
    assert (used / "cleared/run-key").exists()
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(other))
    return used, other


def files(home: Path) -> list[str]:
    return [path.name for path in home.rglob("*") if path.is_file() and path.name != "index-key"]


@pytest.mark.parametrize("how", ["another", "unset", "empty"])
def test_nothing_is_begun_with_new_keys(
    posted: Workspace, homes: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    used, other = homes
    said = f"HOME is {other}"
    if how != "another":
        said = "HOME is not set"
        user = list(pwd.getpwuid(0))
        user[5] = str(other)
        monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd(user))
        monkeypatch.delenv("HOME")
    if how == "empty":
        monkeypatch.setenv("HOME", "")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(other))
    with unchanged(posted):
        for argv in COMMANDS:
            done = posted(*argv)
            assert done.code == 3 and "neither their pin nor their keys are in" in done.err, (argv, done)
            assert said in done.err and "cleared trust" in done.err, (argv, done)
    assert files(other) == []
    for argv in (("status",), ("journal", "list"), ("journal", "balance"), ("queue", "list"), ("doctor",)):
        assert posted(*argv).code == 0, "looking is free"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(used))
    posted.run("ingest")
    posted.in_order()


@pytest.mark.parametrize(
    ("variable", "path"),
    [
        *((each, path) for each in ("HOME", "XDG_CONFIG_HOME", "CLEARED_HOME") for path in ("home", "~/home")),
        ("HOME", ""),
    ],
)
def test_a_home_that_is_not_absolute_is_refused_first(
    posted: Workspace, homes: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, variable: str, path: str
) -> None:
    """Each folder would be another home; and which variable it is, and what to do, is said before anything else."""
    monkeypatch.setenv("HOME", str(homes[0]))
    monkeypatch.setenv(variable, path)
    said = (f"cleared: {variable}: {path!r} is not an absolute path", f"Set {variable} to an absolute path")
    with unchanged(posted):
        for argv in (*COMMANDS, ("trust", "--yes")):
            refused(posted(*argv), 2, *said)


def test_a_user_without_a_home_is_told(
    posted: Workspace, homes: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_nobody(number: int) -> None:
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", find_nobody)
    refused(posted("agent", "run", "ingest"), 2, "HOME: this user has no home directory", "Set HOME (or CLEARED_HOME)")


def test_whoever_means_it_says_so(posted: Workspace, homes: tuple[Path, Path]) -> None:
    """Another user, or another machine with a copy of the folder."""
    take_ok(posted, "trust", "--yes")
    posted.run("ingest")
    posted.ok("queue", "approve", "2025-01-002")
    posted.in_order()


def test_a_machine_key_that_rots_is_told_from_another(posted: Workspace) -> None:
    """FLAT: any 32 bytes are a key; with another one, each commit would be a stranger's."""
    key = cleared_home() / "run-key"
    data = key.read_bytes()
    key.write_bytes((b"B" if data[:1] == b"A" else b"A") + data[1:])
    for argv in (("check",), ("queue", "list"), ("accounts", "rename", "5220", "Wear")):
        with unchanged(posted):
            refused(posted(*argv), 4, "run key", "is damaged", "from a backup", "run-key.pub")
    key.write_bytes(data)
    posted.in_order()


def test_a_machine_key_that_was_taken_away_is_missed(tmp_path: Path, plain_environment: None) -> None:
    assert here("init", str(tmp_path / "books")).code == 0
    ws, key = Workspace(tmp_path / "books"), tmp_path / "home/cleared/run-key"
    data = key.read_bytes()
    key.unlink()
    with unchanged(ws):
        refused(ws("accounts", "rename", "5220", "Wear"), 4, "run key", "is gone", "Put the key back", "cleared trust")
    key.write_bytes(data)
    key.chmod(0o600)
    ws.ok("accounts", "rename", "5220", "Wear")
    ws.in_order()
    key.unlink()  # and where it is lost for good
    key.with_name("run-key.pub").unlink()
    take_ok(ws, "trust", "--yes")
    ws.ok("accounts", "rename", "5220", "Tear")
    ws.in_order()
