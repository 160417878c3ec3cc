"""What the texts that guide an engine include in turn: files that they name after an ``@``, or that settings name, and
what a link in the place of one leads to. An engine reads it along, so it is shown and known along."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Final

from cleared.base.errors import Place, PolicyError
from cleared.changes.host import Host
from cleared.git import Snapshot
from cleared.work.cycles.consensus import CONSENSUS
from cleared.work.cycles.cycle_prompt import PROMPT_FILE

_MOST_TEXTS: Final = 500
_MOST_LINKS: Final = 40
_LINK: Final = "120000"
_MENTION: Final = re.compile(r'(?<!\w)@(?:"([^"\n]+)"|((?:\\ |[^\s\\])+))')
"""What stands after an ``@`` that no word ends in. Engines leave out what is in code; which they take for code differs,
so it counts here."""
_FILE_REFERENCE: Final = re.compile(r"\{file:([^}\n]*)\}")
_REMOTE_TEXT: Final = re.compile(r'"instructions"\s*:\s*\[[^\]]*?(https?://[^"\s]*)', re.IGNORECASE)
_END: Final = re.compile(r"[)\]}>\"'`|,;#:]")
_SETTINGS: Final = (".json", ".jsonc", ".toml", ".yaml", ".yml")
_SEPARATORS: Final = re.compile(r"[\s\"'`=,:;(){}\[\]]+")
_PROSE: Final = (".md", ".mdc", ".txt")


class IncludedTexts:
    """The files of one commit that texts in it include."""

    def __init__(self, commit: Snapshot) -> None:
        self._commit = commit
        self._files: dict[str, list[str]] = {}
        self._links: dict[str, str] = {}
        for path, (mode, oid) in commit.list_entries().items():
            if mode == _LINK:
                self._links[path.casefold()] = oid
            elif mode.startswith("100"):  # in another case it is the same file on macOS and Windows
                self._files.setdefault(path.casefold(), []).append(path)

    def find_linked(self, is_guiding: Callable[[str], bool]) -> Iterator[str]:
        """The files that links lead to which lie where a guiding text would. Raises ``PolicyError`` where one leads out
        of the repository."""
        for path in self._links:
            is_folder = is_guiding(f"{path}/x")
            if is_folder or is_guiding(path):
                target = self._follow("", path, path, path)
                yield from self._files.get(target, ())
                if is_folder:
                    yield from (p for f, paths in self._files.items() if f.startswith(f"{target}/") for p in paths)

    def include(self, texts: Mapping[str, bytes]) -> dict[str, str]:
        """Path of each file that these texts include, themselves or through others → the text that names it.

        Raises ``PolicyError`` where one names a file outside of the repository: nobody could be shown it.
        """
        included: dict[str, str] = {}
        waiting = sorted(texts.items())
        for path, data in waiting:
            for named in self._find_named(path, data.decode("utf-8", "replace")):
                if named in texts or named in included:
                    continue
                included[named] = path
                if len(included) > _MOST_TEXTS:
                    raise PolicyError(
                        f"the texts that guide an engine include more than {_MOST_TEXTS} files; nothing was started",
                        place=Place(path),
                        remedy="Have them include fewer.",
                    )
                waiting.append((named, self._commit.read_file(named) or b""))
        return included

    def _find_named(self, path: str, text: str) -> Iterator[str]:
        folder = path.rpartition("/")[0]
        # The prompt and the consensus are told to the engine, which reads what they name from where it starts.
        bases = ("",) if path in (PROMPT_FILE, CONSENSUS) else (folder, "")
        is_settings = path.casefold().endswith(_SETTINGS)
        for mention in (*_MENTION.finditer(text), *(_FILE_REFERENCE.finditer(text) if is_settings else ())):
            raw = next(group for group in mention.groups() if group is not None).replace("\\ ", " ")
            for name in {raw, raw.rstrip(".,;:!?)]}>'\"`*_|"), _END.split(raw)[0].rstrip(".!?*_")}:
                yield from self._resolve(bases, name, path)
        if is_settings:
            if remote := _REMOTE_TEXT.search(text):
                raise _leads_out(path, remote[1])
            for token in {*_SEPARATORS.split(text)}:
                yield from self._resolve_setting(bases, token)

    def _resolve(self, bases: Iterable[str], name: str, path: str) -> Iterator[str]:
        """The files that a name leads to from one of these folders; from the first it may not lead out."""
        if PurePosixPath(name).name in ("", ".", "..") or name == "~":
            return
        for number, base in enumerate(bases):
            try:
                yield from self._files.get(self._follow(base, name, path, name), ())
            except PolicyError:
                if number == 0:
                    raise

    def _resolve_setting(self, bases: Iterable[str], token: str) -> Iterator[str]:
        """The files that a word in settings may name: by their path, by a pattern, or by a name that is looked for in
        each folder. Programs that lie outside are named there, too; what such a word says is seen."""
        name = re.sub(r"^\$\w+", "", token).lstrip("/").removeprefix("./").casefold()
        if not name:
            return
        if "*" in name:
            yield from (p for f, paths in self._files.items() if fnmatchcase(f, f"*{name}") for p in paths)
        elif "/" not in name and name.endswith(_PROSE):
            yield from (p for f, paths in self._files.items() if f.rpartition("/")[2] == name for p in paths)
        else:
            for base in bases:
                try:
                    yield from self._files.get(self._follow(base, name, "", name), ())
                except PolicyError:
                    continue

    def _follow(self, base: str, name: str, path: str, shown: str) -> str:
        """Where a name leads to from a folder of the commit, links followed; in lower case. Raises ``PolicyError``
        where that is outside of it."""
        parts, waiting, links = base.casefold().split("/") if base else [], [name.casefold()], 0
        while waiting:
            step = waiting.pop()
            if step.startswith(("/", "~")):
                raise _leads_out(path, shown)
            first, _, rest = step.partition("/")
            if rest := rest.lstrip("/"):
                waiting.append(rest)
            if first == "..":
                if not parts:
                    raise _leads_out(path, shown)
                parts.pop()
            elif first not in ("", "."):
                parts.append(first)
                link = self._links.get("/".join(parts))
                if link is not None:
                    links += 1
                    if links > _MOST_LINKS:
                        return ""
                    parts.pop()
                    waiting.append(self._commit.repo.objects.read_object(link)[1].decode("utf-8", "replace").casefold())
        return "/".join(parts)


def list_include_problems(host: Host, commit: str, path: str, data: bytes) -> list[str]:
    """Why no engine may be told this text, by what it includes of the commit; nothing where it may."""
    with host.open_for_reading() as repo:
        try:
            IncludedTexts(Snapshot(repo, commit)).include({path: data})
        except PolicyError as error:
            where = f"{error.place}: " if error.place and str(error.place) != path else ""
            return [where + re.split(", so that|; nothing", error.message)[0]]
    return []


def _leads_out(path: str, named: str) -> PolicyError:
    return PolicyError(
        f"it names {named[:200]!r}, which leads out of the repository, so that nobody can be shown what an engine "
        "would read; nothing was started",
        place=Place(path),
        remedy="Take that out of it, and put what is needed into the repository.",
    )
