"""docs/extending.md: twenty changes, each with its section, and every file it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
FILES = sorted(set(re.findall(r"`((?:cleared|tests|docs)/[\w/.]*)`", PAGE)))
NAMES = sorted(set(re.findall(r"`([a-z]+(?:_[a-z]+)+|[A-Z]+(?:_[A-Z]+)*|[A-Z][a-z]+[A-Z]\w+)`", PAGE)))


@pytest.mark.parametrize("file", FILES)
def test_a_named_file_exists(file: str) -> None:
    assert (ROOT / file).exists(), f"docs/extending.md names {file}"


@pytest.mark.parametrize("name", NAMES)
def test_a_named_function_class_or_list_is_in_a_named_file(name: str) -> None:
    sources = [(ROOT / file).read_text(encoding="utf-8") for file in FILES if file.endswith(".py")]
    assert any(re.search(rf"\b{name}\b", text) for text in sources), f"docs/extending.md names {name}"


def test_there_are_twenty_changes_and_the_table_has_them_all() -> None:
    sections = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    rows = re.findall(r"^\| \[(.*?)\]\(#", PAGE, re.MULTILINE)
    assert len(sections) == 20
    assert [name.lower() for name in sections] == rows
