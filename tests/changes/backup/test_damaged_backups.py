"""Backups that were cut off, altered, or made by somebody to do harm: refused, and nothing is left of them."""

from __future__ import annotations

import io
import json
import random
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from backups import WORDS, all_files, back_up, other_machine, restore
from harness import Workspace, copy_books, environment, here, no_traceback

from cleared.changes.backup.manifest import BUNDLE, NAME
from cleared.changes.backup.sealed_stream import MAGIC, PIECE, SealedFile, SealingWriter


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, starting_point: Path) -> bytes:
    """A backup of more than two pieces."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CLEARED_HOME")
        for key, value in environment(folder).items():
            patch.setenv(key, value)
        ws = Workspace(copy_books(starting_point, folder / "books"))
        ws.put("receipts/scan.pdf", random.Random(1).randbytes(2 * PIECE + 77))
        return back_up(ws).read_bytes()


@pytest.fixture
def good(made: bytes, plain_environment: None, tmp_path: Path) -> Path:
    (tmp_path / "books.cleared").write_bytes(made)
    return tmp_path / "books.cleared"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """An empty folder on another machine."""
    with other_machine(tmp_path / "machine"):
        (tmp_path / "place").mkdir()
        yield tmp_path / "place"


def assert_refused(file: Path, place: Path, *said: str, code: int = 4, words: str = WORDS) -> None:
    done = restore(file, place / "new", words=words)
    assert done.code == code, done
    no_traceback(done)
    assert done.out == "" and all(text in done.err for text in said), done.err
    assert list(place.iterdir()) == [], "nothing is left"
    assert list(place.parent.joinpath("machine").iterdir()) == [], "nothing was put beside a key"


def header_of(whole: bytes) -> int:
    """The length of the three lines at the beginning."""
    return sum(len(line) + 1 for line in whole.split(b"\n", 3)[:3])


def test_another_passphrase_opens_nothing(good: Path, place: Path) -> None:
    assert_refused(good, place, "this is not the passphrase", code=3, words="another long passphrase")


def test_every_cut_is_noticed(good: Path, place: Path) -> None:
    whole = good.read_bytes()
    header = header_of(whole)
    pieces = [header + 16 + number * (PIECE + 16) for number in range(3)]
    for cut in (0, 5, len(MAGIC), header - 5, header, header + 3, *pieces, pieces[1] - 1, len(whole) - 1):
        good.write_bytes(whole[:cut])
        assert_refused(good, place, "no backup" if cut < len(MAGIC) else "cannot be used")
    good.write_bytes(whole + b"\0")
    assert_refused(good, place, "cannot be used")
    good.write_bytes(whole)
    assert here("restore", str(good), "--check", "--passphrase-file", str(good.parent / "words")).code == 0


def test_every_changed_byte_is_noticed(good: Path, place: Path) -> None:
    whole, chance = good.read_bytes(), random.Random(7)
    for _ in range(12):
        at = chance.randrange(len(whole))
        good.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << chance.randrange(8))]) + whole[at + 1 :])
        done = restore(good, place / "new")
        assert done.code in (3, 4), (at, done)
        assert list(place.iterdir()) == []
    start, size = header_of(whole) + 16, PIECE + 16
    pieces = [whole[at : at + size] for at in range(start, len(whole), size)]
    good.write_bytes(whole[:start] + b"".join([pieces[1], pieces[0], *pieces[2:]]))
    assert_refused(good, place, "it is damaged in its")


def test_another_file_or_version_is_named(good: Path, place: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"PK\x03\x04 no backup")
    assert_refused(other, place, "this is no backup of cleared")
    other.write_bytes(good.read_bytes().replace(MAGIC, b"cleared-backup 2\n", 1))
    assert_refused(other, place, "another version")
    assert_refused(tmp_path / "none", place, "no such file")
    assert_refused(place.parent, place, "cannot be read")


# -- made to do harm, by somebody who knows the passphrase -------------------------------------------------------------


def rebuild(good: Path, change: Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]) -> None:
    """Seal the same members again, as somebody has changed them."""
    with good.open("rb") as file:
        sealed = SealedFile(file, "good")
        data = sealed.read_stream(sealed.try_passphrase(WORDS)).read()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = [(info, (tar.extractfile(info) or io.BytesIO()).read() if info.isreg() else b"") for info in tar]
    change(members)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in members:
            info.size = len(content) if info.isreg() else info.size
            tar.addfile(info, io.BytesIO(content) if info.isreg() else None)
    seal(good, out.getvalue())


def seal(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        writer = SealingWriter(file, WORDS)
        writer.write(data)
        writer.finish()


def plant(name: str, content: bytes = b"planted", *, before: str = "", **fields: Any) -> Callable[[list[Any]], None]:
    """One more member, at the end or before another."""
    info = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(info, field, value)
    return lambda members: members.insert(
        next((n for n, (i, _) in enumerate(members) if before and i.name == before), len(members)), (info, content)
    )


LINK, HARD, DEVICE, PIPE, SPARSE = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, b"S"


@pytest.mark.parametrize(
    "change",
    [
        plant("files/../../outside"),
        plant("files//etc/passwd"),
        plant("/etc/passwd"),
        plant("files/a/../../../x"),
        plant("files/.git/hooks/post-commit"),
        plant("files/.GIT/config"),
        plant("files/git~1/config"),
        plant("files/sub/.git/config"),
        plant("files/config.yaml"),
        plant("files/agents/ingest.py/inner"),
        plant("elsewhere/file"),
        plant("home/../x", before=BUNDLE),
        plant("home/approval-key"),
        plant("home/other-file", before="git/index"),
        plant("home/workspaces/../../x", before="git/index"),
        plant("git/config"),
        plant("git/objects/info/alternates", before=BUNDLE),
        plant("git/cleared-anything"),
        plant("git/logs/../../x", before=BUNDLE),
        plant("git/../x", before=BUNDLE),
        plant("files/x", b"", type=HARD, linkname="files/config.yaml"),
        plant("files/x", b"", type=DEVICE, devmajor=1),
        plant("files/x", b"", type=PIPE),
        plant("files/x", b"", type=SPARSE),
        plant("files/" + "d/" * 150 + "x"),
        plant("files/x", b"x", pax_headers={"comment": "x" * 100_000}),
        plant("files/x", b"", pax_headers={"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}),
        lambda members: members.pop(0),
        lambda members: members.remove(next(m for m in members if m[0].name == BUNDLE)),
        lambda members: members.append(members[0]),
    ],
)
def test_what_could_reach_outside_is_refused(good: Path, place: Path, change: Callable[[list[Any]], None]) -> None:
    rebuild(good, change)
    before = all_files(place.parent)
    assert_refused(good, place)
    assert all_files(place.parent) == {**before, "words": f"{WORDS}\n".encode()}


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 2},
        {"made_at": "no time"},
        {"workspace": "../../x"},
        {"mark": "../x"},
        {"commit": "HEAD"},
        {"git": {}},
        {"git": 7},
        {"git.head": "refs/heads/../../x"},
        {"git.refs": {"refs/heads/x": "0" * 40}},
        {"git.refs": {"refs/../config": "HEAD"}},
        {"git.symbolic": {"HEAD": "refs/../../x"}},
        {"git.hash": "md5"},
        {"git.refs": {"refs/heads/a b": "1" * 40}},
        {"unknown": 1},
    ],
)
def test_what_it_says_of_itself_is_checked(good: Path, place: Path, changed: dict[str, Any]) -> None:
    def change(members: list[Any]) -> None:
        data = json.loads(members[0][1])
        for key, value in changed.items():
            outer, _, inner = key.rpartition(".")
            (data[outer] if outer else data)[inner] = value
        members[0] = (members[0][0], json.dumps(data).encode())

    rebuild(good, change)
    assert_refused(good, place)


@pytest.mark.parametrize("name", [BUNDLE, "git/index", NAME])
def test_garbage_in_a_member_is_refused(good: Path, place: Path, name: str) -> None:
    def change(members: list[Any]) -> None:
        members[:] = [(i, b"garbage\n\n" + c[:-100] if i.name == name else c) for i, c in members]

    rebuild(good, change)
    assert_refused(good, place)


def test_an_index_that_leads_outside_is_not_taken(good: Path, place: Path) -> None:
    def change(members: list[Any]) -> None:
        oid = next(c for i, c in members if i.name == "git/index").split()[1].decode()
        members[:] = [(i, f"100644 {oid} 0\t../../x\0".encode() if i.name == "git/index" else c) for i, c in members]

    rebuild(good, change)
    assert restore(good, place / "new").code == 0
    assert "x" not in Workspace(place / "new").git("ls-files")


def test_links_that_lead_out_are_not_made(good: Path, place: Path) -> None:
    def change(members: list[Any]) -> None:
        for name, target in (
            ("a", "/etc"),
            ("b", "../.."),
            ("c", "d/.."),
            ("d", "."),
            ("e", ".git/config"),
            ("f", "d/f"),
        ):
            plant(f"files/{name}", b"", type=LINK, linkname=target)(members)
        plant("files/sub", b"", type=tarfile.DIRTYPE, mode=0o755)(members)
        plant("files/sub/up", b"", type=LINK, linkname="..")(members)
        plant("files/through", b"", type=LINK, linkname="sub/up/..")(members)
        plant("files/fine", b"", type=LINK, linkname="config.yaml")(members)

    rebuild(good, change)
    done = restore(good, place / "new")
    assert done.code == 0, done
    top = place / "new"
    for path in top.iterdir():
        assert path.resolve().is_relative_to(top.resolve()) and ".git" not in path.resolve().relative_to(top).parts[1:]
    assert (top / "fine").read_bytes() == (top / "config.yaml").read_bytes()
    assert not any((top / name).is_symlink() for name in ("a", "b", "e", "through"))


def test_a_file_through_a_link_is_refused(good: Path, place: Path, tmp_path: Path) -> None:
    def change(members: list[Any]) -> None:
        plant("files/way", b"", type=LINK, linkname=str(tmp_path))(members)
        plant("files/way/planted")(members)

    rebuild(good, change)
    done = restore(good, place / "new")
    assert not (tmp_path / "planted").exists()
    assert done.code != 0 and list(place.iterdir()) == [], done


def test_programs_of_a_strangers_repository_do_not_run(good: Path, place: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"

    def change(members: list[Any]) -> None:
        config = f'[core]\n\tfsmonitor = touch {mark}\n\thooksPath = {tmp_path}\n[filter "x"]\n\tclean = touch {mark}\n'
        config += '[remote "origin"]\n\turl = https://example.com/books.git\n\tuploadpack = touch x\n'
        members[:] = [(i, config.encode() if i.name == "git/config" else c) for i, c in members]
        plant("git/hooks/post-checkout", f"#!/bin/sh\ntouch {mark}\n".encode(), mode=0o755, before=BUNDLE)(members)

    rebuild(good, change)
    assert restore(good, place / "new").code == 0
    ws = Workspace(place / "new")
    ws.git("status")
    assert not mark.exists()
    config = (ws.root / ".git/config").read_text()
    assert "example.com" in config and "touch" not in config and "hooksPath" not in config
