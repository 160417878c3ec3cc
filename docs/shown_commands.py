"""The pages' commands, run for real: ``sh`` blocks are executed, the ``text`` block that follows is what they print.

A page is read from top to bottom in one terminal: blocks share the directory and nothing else.
``python -m docs.shown_commands PAGE…`` writes what the commands print now into the page; the tests compare. Ids, hashes
and durations differ from run to run: they are compared by their shape, and an id that a later command uses is replaced
by its counterpart. A line of a single … stands for any lines: a page shows what matters of a long output.

Directives, as HTML comments of their own before a block: ``<!-- start: COMMAND -->`` runs before the page's first
block, where the functions of ``docs/starts.sh`` are known; ``<!-- not run: WHY -->`` leaves the next ``sh`` block out.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2025, 2, 3, 8, 30, tzinfo=UTC)
COLUMNS = 140
SECONDS = 120
OMITTED = "…"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_START = re.compile(r"^<!-- start: (.*?) -->$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run: .*? -->\s*\Z", re.DOTALL)
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9])")
# A line that the cursor went back to and wiped.
_ERASED = re.compile(r"[^\n]*\n(?:\r|\x1b\[\?\d+[hl])*\x1b\[1A\x1b\[2K")
_ID = re.compile(
    r"\b\d{8}T\d{6}Z-[0-9a-f]{6}\b|\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b"
    r"|(?<=\bingest-)[0-9a-f]{6}\b"  # a test, by its run
)
# What else is different each time, by how it looks in a line.
_SHAPES = (
    (re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\s+)\d+(?=\s)"), r"\1MS"),
    (re.compile(r"(duration_ms\W+)\d+"), r"\1MS"),
    (re.compile(r"^(duration_sec\s+)\d+\.\d+$"), r"\1MS"),
    (re.compile(r"\s\d+\.\d\d$"), " MS"),
    (re.compile(r"process \d+"), "process N"),
    (re.compile(r"\b\d+ kB\b"), "N kB"),
    (re.compile(r"(?<=\s)[A-Za-z0-9+/]{16}(?=\s+\d{4}-\d\d-\d\d)"), "KEY"),
    (re.compile(r"\bin \d+\.\d+ s\b"), "in MS s"),
    # The card of a question is named after its run.
    (re.compile(r"(?<=queue answer )[a-z2-7]{8}\b|(?<=Answered: )[a-z2-7]{8}\b"), "CARD"),
    (re.compile(r"^\s*[a-z2-7]{8}(?=\s+question\s)"), "CARD"),
)


@dataclass(frozen=True)
class Block:
    """Commands of a page, and what the page says they print; ``start`` and ``end`` are where that stands."""

    line: int
    commands: str
    printed: str | None
    start: int
    end: int


def blocks(page: str) -> Iterator[Block]:
    """Every block that is run, in order."""
    fences = list(_FENCE.finditer(page))
    for i, fence in enumerate(fences):
        if fence[1] != "sh" or _NOT_RUN.search(page[: fence.start()]):
            continue
        follower = fences[i + 1] if i + 1 < len(fences) else None
        line = page.count("\n", 0, fence.start()) + 1
        if follower and follower[1] == "text" and not page[fence.end() : follower.start()].strip():
            yield Block(line, fence[2], follower[2], follower.start(2), follower.end(2))
        else:
            yield Block(line, fence[2], None, fence.end(), fence.end())


class Terminal:
    """One terminal in an empty directory, used by somebody called Ana with ``cleared`` on her path.

    Every block is typed a minute after the one before. ``tools``: where her ``cleared`` is.
    """

    def __init__(self, folder: Path, tools: Path = Path(sys.executable).parent) -> None:
        self.home = folder / "home"
        self.here = self.home
        self.now = START
        self.home.mkdir(parents=True)
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = Ana Moreno\n\temail = ana@example.com\n[init]\n\tdefaultBranch = main\n"
        )
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "CLEARED_", "PYTHON", "LC_", "XDG_"))}
        self.environment = kept | {
            "HOME": str(self.home),
            "USER": "ana",
            "LOGNAME": "ana",
            "TERM": "xterm",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PATH": f"{tools}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "GIT_CONFIG_GLOBAL": str(self.home / ".gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PAGER": "cat",
            "CHECKOUT": str(Path(__file__).resolve().parent.parent),
        }
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
            self.environment.pop(name, None)

    def type(self, commands: str) -> str:
        """What a terminal shows when the commands are typed; colours left out, paths of the home directory as ~."""
        after = self.home.parent / "directory"
        script = f'cd "$HERE" || exit\n{commands.rstrip()}\npwd -P >"$AFTER"\n'
        now = f"{self.now:%Y-%m-%dT%H:%M:%SZ}"
        self.now += timedelta(minutes=1)
        environment = self.environment | {
            "HERE": str(self.here),
            "AFTER": str(after),
            "CLEARED_CLOCK": now,
            "GIT_AUTHOR_DATE": now,
            "GIT_COMMITTER_DATE": now,
        }
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
        process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-c", script],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        shown = b""
        try:
            while data := _read(ours):
                shown += data
            process.wait(SECONDS)
        finally:
            os.close(ours)
            process.kill()
            process.wait()
        if after.exists():
            self.here = Path(after.read_text().rstrip("\n"))
        text = _ERASED.sub("", shown.decode("utf-8", "replace").replace("\r\n", "\n"))
        text = _ANSI.sub("", text)
        text = text.replace(str(self.home.resolve()), "~").replace(str(self.home), "~")
        # Of a line that was written over, as progress is, the last state stays.
        lines = "\n".join(line.rpartition("\r")[2].rstrip() for line in text.split("\n")).strip("\n")
        return f"{lines}\n" if lines else ""


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # Linux's way of saying that the last writer has gone
        return b""


def start_of(page: str) -> str | None:
    """What is run before the page begins."""
    found = _START.search(page)
    return found[1] if found else None


def rehearse(page: str, folder: Path, tools: Path = Path(sys.executable).parent) -> Iterator[tuple[Block, str]]:
    """Type the page's commands in order; each block with what it printed."""
    terminal = Terminal(folder, tools)
    start = start_of(page)
    if start:
        terminal.type(f'. "$CHECKOUT/docs/starts.sh" && {start}')
    known: dict[str, str] = {}
    for block in blocks(page):
        shown = terminal.type(_ID.sub(lambda m: known.get(m[0], m[0]), block.commands))
        known.update(pair_ids(block.printed or "", shown))
        yield block, shown


def shape(text: str) -> list[str]:
    """The lines of an output without what differs each time."""
    out = []
    for line in text.strip().splitlines():
        line = _ID.sub("ID", line)
        for pattern, instead in _SHAPES:
            line = pattern.sub(instead, line)
        out.append(re.sub(r"[ ─━]+", " ", line).strip())
    return out


def match_lines(printed: str, shown: str) -> list[tuple[str, str]] | None:
    """Each printed line with the one that was shown for it; None where what was shown is something else."""
    lines, paired, at = shown.strip().splitlines(), list[tuple[str, str]](), 0
    parts = _split_at_omissions(printed.strip().splitlines())
    for number, part in enumerate(parts):
        last = len(lines) - len(part)
        # The first part stands at the beginning and the last one at the end; those between, wherever they come first.
        places = [0] if number == 0 else range(at, last + 1)
        if number == len(parts) - 1:
            places = [last] if last in places else []
        wanted = shape("\n".join(part))
        place = next((n for n in places if shape("\n".join(lines[n : n + len(part)])) == wanted), None)
        if place is None:
            return None
        paired += zip(part, lines[place : place + len(part)], strict=False)
        at = place + len(part)
    return paired


def _split_at_omissions(lines: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in lines:
        if line.strip() == OMITTED:
            parts.append([])
        else:
            parts[-1].append(line)
    return parts


def pair_ids(printed: str, shown: str) -> dict[str, str]:
    """Ids of the page → those of now; where an output changed, in their order."""
    pairs = match_lines(printed, shown) or [(printed, shown)]
    return {old: new for left, right in pairs for old, new in zip(_ID.findall(left), _ID.findall(right), strict=False)}


def rewritten(page: str, folder: Path) -> str:
    """The page with what its commands print now; an output of the same shape stays as it is."""
    out, at, known = [], 0, dict[str, str]()
    for block, shown in rehearse(page, folder):
        if block.printed is None:
            if shown.strip():
                print(f"line {block.line}: printed, but the page shows nothing:\n{shown}", file=sys.stderr)  # noqa: T201
            continue
        if match_lines(block.printed, shown) is not None:
            continue
        known.update(zip(_ID.findall(block.printed), _ID.findall(shown), strict=False))
        out += [page[at : block.start], shown]
        at = block.end
    text = "".join([*out, page[at:]])
    return _ID.sub(lambda m: known.get(m[0], m[0]), text) if known else text


def main(names: list[str]) -> None:
    """Write what the commands print now into the pages."""
    for name in names:
        path = Path(name)
        with tempfile.TemporaryDirectory() as folder:
            path.write_text(rewritten(path.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")


def pages(root: Path) -> Mapping[str, Path]:
    """Every page with commands to run, by its path."""
    found = [*root.glob("*.md"), *root.glob("docs/**/*.md")]
    return {
        p.relative_to(root).as_posix(): p
        for p in sorted(found)
        if "reference" not in p.parts and any(blocks(p.read_text(encoding="utf-8")))
    }


if __name__ == "__main__":
    main(sys.argv[1:])
