"""What the pages point to exists: files, headings, commands with their options, primitives, configuration keys."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = {p.relative_to(ROOT).as_posix(): p for p in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])}
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_PRIMITIVE = re.compile(r"(?:accounts|config|ctx|git|importer|journal|money|queue|script)_[a-z_]+")


def prose(page: str) -> str:
    return _FENCED.sub("", PAGES[page].read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """The headings of a page as GitHub names them."""
    heads = re.findall(r"^#+ (.*)$", _FENCED.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (PAGES[page].parent / name).resolve() if name else PAGES[page]
        assert path.exists(), f"{page} links to {target}"
        assert path.is_relative_to(ROOT), f"{page} links out of the project: {target}"
        assert not anchor or anchor in anchors(path), f"{page} links to {target}, which has no such heading"


def commands() -> dict[str, set[str]]:
    """``agent run`` → its flags, groups with none."""
    from typer.main import get_command

    from cleared.cli.commands import build_tree

    found: dict[str, set[str]] = {}

    def walk(node: object, path: list[str]) -> None:
        found[" ".join(path)] = {flag for p in node.params for flag in p.opts if flag.startswith("-")}  # type: ignore[attr-defined]
        for name, child in getattr(node, "commands", {}).items():
            walk(child, [*path, name])

    walk(get_command(build_tree()), [])
    return found


KNOWN = commands()
KNOWN["import"] = KNOWN["import files"]  # the word may be left out


def mentioned(text: str) -> list[list[str]]:
    """The words after ``cleared`` of every command line in code spans and blocks."""
    spans = _SPAN.findall(_FENCED.sub("", text))
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    found = []
    for line in [*spans, *lines]:
        for call in re.findall(r"(?:^|[|&;(] *|/)cleared ([a-z-].*)", line.strip()):
            call = re.split(r" (?:[|&]|2?>)|[;)]", call)[0]
            try:
                found.append(shlex.split(call))
            except ValueError:
                found.append(call.split())
    return found


@pytest.mark.parametrize("page", [p for p in PAGES if "CHANGELOG" not in p])
def test_commands_exist(page: str) -> None:
    for words in mentioned(PAGES[page].read_text(encoding="utf-8")):
        if words[0] == "-C":
            words = words[2:]
        path = ""
        for word in words:
            longer = f"{path} {word}".strip()
            if longer not in KNOWN:
                break
            path = longer
        shown = f"{page} mentions: cleared {' '.join(words)}"
        words = words[: words.index("--")] if "--" in words else words
        if words and not words[0].startswith("-"):
            assert path, shown
            is_group = any(name.startswith(f"{path} ") for name in KNOWN)
            rest = words[len(path.split()) :]
            assert not (is_group and rest and re.fullmatch(r"[a-z][a-z-]*", rest[0])), shown
        flags = {w.partition("=")[0] for w in words if w.startswith("-")} - {"-h", "--help"}
        assert flags <= KNOWN[path] | KNOWN[""] | {"--install-completion", "--show-completion"}, shown


@pytest.mark.parametrize("page", PAGES)
def test_primitives_exist(page: str) -> None:
    from cleared.api.mcp_server.client_calls import TOOLS
    from cleared.jobs.job_types import load_built_in
    from cleared.primitives import primitive_registry

    known = {*primitive_registry(), *load_built_in(), *TOOLS}  # job types and tools are called alike
    for span in _SPAN.findall(prose(page)):
        found = _PRIMITIVE.match(span)
        if found and (span == found[0] or span[found.end()] == "("):
            assert found[0] in known, f"{page} mentions {found[0]}"


@pytest.mark.parametrize("page", [p for p in PAGES if "reference" not in p])
def test_configuration_keys_exist(page: str) -> None:
    from cleared.triggers.event_stream import BUILT_IN_EVENTS
    from cleared.workspace.settings.reference import list_settings

    known = {info.key for info in list_settings()} | set(BUILT_IN_EVENTS)
    sections = {key.partition(".")[0].removesuffix("[]") for key in known}
    known |= {key.rsplit(".", n)[0] for key in known for n in (1, 2, 3)}
    for span in _SPAN.findall(prose(page)):
        key = span.removesuffix(":")
        head, dot, rest = key.partition(".")
        if not dot or head.removesuffix("[]") not in sections or not re.fullmatch(r"[a-z0-9_<>.\[\]]+", key):
            continue
        if rest in ("py", "yaml", "csv") or key.replace(".", " ") in KNOWN:
            continue  # a file, or a method of the RPC
        assert key in known, f"{page} mentions the key {key}"


def test_the_design_has_the_layers_that_are_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    checked = project["tool"]["importlinter"]["contracts"][0]["layers"]
    section = PAGES["docs/design.md"].read_text(encoding="utf-8").partition("## Layers")[2].partition("```text\n")[2]
    shown = [re.split(r"  +", line)[0] for line in section.partition("```")[0].splitlines() if line[0] != " "]
    assert [line.replace(" | ", " : ") for line in shown] == [line.replace(" | ", " : ") for line in checked]
