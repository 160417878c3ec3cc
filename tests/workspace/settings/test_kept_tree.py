"""The tree of ``config.yaml`` is kept, and says what the parser says: of this text, and from this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from harness import Workspace
from hypothesis import given
from hypothesis import strategies as st

from cleared.workspace.sealed_files import SealedFiles
from cleared.workspace.settings import kept_tree
from cleared.workspace.settings.kept_tree import keep_tree, parse_kept
from cleared.workspace.settings.loading import read_valid_part
from cleared.workspace.settings.yaml_tree import TreeError, parse_yaml

KEY = "lock.wait_seconds"


def change(ws: Workspace, value: int) -> None:
    ws.put("config.yaml", f"lock:\n  wait_seconds: {value}\n")


def read(ws: Workspace) -> object:
    """The setting, as a new process reads it."""
    read_valid_part.cache_clear()
    return ws.json("config", "get", KEY)


def keep(ws: Workspace) -> Path:
    """What a command leaves that may write."""
    read_valid_part.cache_clear()
    ws("agent", "run", "ingest")
    (kept,) = kept_files(ws)
    return kept


def kept_files(ws: Workspace) -> list[Path]:
    return sorted((ws.root / ".cleared/books").glob("*.tree"))


def test_it_is_read_without_the_parser_until_the_text_changes(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    monkeypatch.setattr(kept_tree, "parse_yaml", lambda text: parsed.append(text) or parse_yaml(text))
    state = ws.root / ".cleared"
    for text, most in (("a: 1\n", 1), ("a: 1\n", 1), ("a: 2\n", 2), ("a: 1\n", 3)):
        assert parse_kept(text, state) == parse_yaml(text)
        keep_tree(state)
        assert len(parsed) == most
        assert len(kept_files(ws)) == 1, "what was taken out of the file does not stay"


def test_who_only_reads_keeps_nothing(ws: Workspace) -> None:
    change(ws, 7)
    read(ws)
    assert kept_files(ws) == []
    assert keep(ws).stat().st_mode & 0o077 == 0 or sys.platform == "win32"


@pytest.mark.parametrize("written", ["hunter2-secret", "'hunter2-secret'", '"hunter2-secret"', '"hunter2\\x2dsecret"'])
def test_no_word_of_the_settings_is_kept(ws: Workspace, written: str) -> None:
    state, text = ws.root / ".cleared", f"notifications:\n  smtp_password: {written}  # hunter2\n"
    assert parse_kept(text, state) == parse_yaml(text)
    keep_tree(state)
    assert not any(b"hunter2" in path.read_bytes() for path in state.rglob("*.tree"))
    assert parse_kept(text, state) == parse_yaml(text)


def test_a_change_counts_at_once(ws: Workspace) -> None:
    for value in (7, 8, 7):
        change(ws, value)
        assert "7" in str(read(ws)) if value == 7 else "8" in str(read(ws))


@pytest.mark.parametrize("content", [b"", b"\x80", b"\xc1", b"\x93\x01\x02\x03"])
def test_one_of_another_shape_is_made_again(ws: Workspace, content: bytes) -> None:
    """As where somebody's own program has written it: with this machine's key, and wrong."""
    change(ws, 7)
    before, kept = read(ws), keep(ws)
    SealedFiles(ws.root / ".cleared", kept_tree._parser_version()).write(kept.name, content)
    assert read(ws) == before
    keep(ws)
    assert SealedFiles(ws.root / ".cleared", kept_tree._parser_version()).read(kept.name) != content


@pytest.mark.parametrize("how", ["another text's", "flipped", "cut", "folder", "pipe", "huge"])
def test_what_this_machine_did_not_write_is_not_believed(ws: Workspace, how: str) -> None:
    change(ws, 8)
    old = keep(ws).read_bytes()
    change(ws, 7)
    before, kept = read(ws), keep(ws)
    data = kept.read_bytes()
    kept.unlink()
    if how == "another text's":
        kept.write_bytes(old)
    elif how == "flipped":
        kept.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif how == "cut":
        kept.write_bytes(data[:40])
    elif how == "folder":
        kept.mkdir()
    elif how == "pipe":
        if sys.platform == "win32":
            pytest.skip("Windows has no such files")
        os.mkfifo(kept)
    else:
        with kept.open("wb") as file:
            file.truncate(1 << 40)
    assert read(ws) == before


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize("link", [".cleared", ".cleared/books"])
def test_a_link_removes_no_files_elsewhere(ws: Workspace, tmp_path: Path, link: str) -> None:
    """A folder of that name can be pushed as a link."""
    elsewhere = tmp_path / "elsewhere"
    theirs = [elsewhere / below / f"{n}.tree" for below in ("", "books") for n in range(4)]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("theirs")
    place = ws.root / link
    change(ws, 8)
    keep(ws)
    place.rename(tmp_path / "before")
    place.symlink_to(elsewhere)
    change(ws, 7)
    read_valid_part.cache_clear()
    ws("config", "get", KEY)
    ws("agent", "run", "ingest")
    assert all(path.read_text() == "theirs" for path in theirs)


def test_half_a_character_is_refused_wherever_it_stands() -> None:
    for text in ("a: \ud800\n", 'b: 1\na: "\\ud800"\n'):
        with pytest.raises(TreeError) as caught:
            parse_yaml(text)
        assert caught.value.line == 1 + text.startswith("b")


TEXTS = st.lists(st.sampled_from(list("ab:-? ,[]{}'\"#|>&*!%@`~\n\\ 1é\u2028")), max_size=40).map("".join)


@given(TEXTS)
def test_it_says_what_the_parser_says(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    state = tmp_path_factory.mktemp("kept") / ".cleared"
    state.mkdir()
    try:
        expected = parse_yaml(text)
    except TreeError as error:
        for _ in range(2):
            with pytest.raises(TreeError) as caught:
                parse_kept(text, state)
            assert (caught.value.message, caught.value.line) == (error.message, error.line)
        return
    for _ in range(2):
        assert parse_kept(text, state) == expected
        keep_tree(state)
