"""A script's header: the docstring's ``key: rest of line`` lines.

Values need no quoting (``schedule: */5 * * * *``, ``@daily``); a list is ``[a, b]`` or one value. Indented
lines continue the description.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Any, Literal

from msgspec import Struct

from cleared.base.errors import Place
from cleared.sandbox import header_values
from cleared.sandbox.finding import Finding, make_rules
from cleared.sandbox.script_source import normalise_text, parse_script
from cleared.sandbox.trigger_kinds import (
    KEYED_KINDS,
    ON_DEMAND,
    SCHEDULE,
    TRIGGER_KINDS,
    TRIGGER_NAMES,
    header_readers,
)

_NEVER = "An agent that is never run, or run at another time than meant, is noticed late."

RULES = make_rules(
    "lint",
    {
        "header-missing": (
            "an agent whose text does not begin with a docstring",
            "Without one nobody can say what the agent is for and when it is run.",
            'Begin the file with """, a line `name: …`, a line `trigger: …`, and """.',
        ),
        "header-name": (
            "no name, an empty one, or one of more than 200 characters",
            "Cards and logs call the agent by it.",
            "Add a line `name: …`.",
        ),
        "header-line": (
            "a line that is no `key: value`, or a second line of anything but a description",
            "It would have no effect, and look as if it had one.",
            "Put prose under `description:`, indented.",
        ),
        "header-key": (
            "an unknown key",
            "A misspelt key would leave the agent without what the line is to say.",
            "Write one of the known keys; see how to write an agent.",
        ),
        "header-duplicate": (
            "a key that is given twice",
            "Only one of the lines could hold, and no reader can tell which.",
            "Keep one of the lines.",
        ),
        "header-trigger": (
            "an unknown trigger, a trigger without its key, a key without its trigger",
            _NEVER,
            f"Write both: `trigger: {SCHEDULE.name}` and `{SCHEDULE.key}: …`, "
            f"{', '.join(f'{kind.name} and {kind.key}' for kind in KEYED_KINDS if kind is not SCHEDULE)}.",
        ),
        "header-cron": (
            "a schedule that is no cron expression, or never happens",
            _NEVER,
            "Write minute hour day month weekday, e.g. `0 6 * * *`, or an alias such as @daily.",
        ),
        "header-timezone": ("a time zone that does not exist", _NEVER, "Write it like Europe/London or UTC."),
        "header-watch": (
            "a path to watch that is not under the workspace",
            "An agent sees its workspace and nothing else.",
            "Name a directory or glob under the workspace, e.g. import/*.csv.",
        ),
        "header-number": (
            "a budget or limit that is no number, or out of range",
            "A budget that cannot be read would be no budget.",
            "Write plain digits; times like 30s or 5m, amounts like 1500.00.",
        ),
        "header-args": (
            "an argument's name that is no name, or is given twice",
            "A shared script gets its arguments as variables of these names.",
            "Write it like [month, year].",
        ),
        "header-value": (
            "an empty value, one of several words where a name is expected, or one that is not among the choices",
            "Half of a list would be read as one name that matches nothing.",
            "Write one name, or a list as [a, b].",
        ),
    },
)

_KEY = re.compile(r"([A-Za-z_][\w-]*)\s*:(?:\s+(.*)|)$")
_OPENING = re.compile(r"""[rRuU]?(\"\"\"|'''|"|')""")


class HeaderLine(Struct, frozen=True):
    """One ``key: value`` as written; ``line`` is 1-based in the file."""

    key: str
    value: str
    line: int


class HeaderKey(Struct, frozen=True):
    """A key that a domain declares, such as a bound of what a run may do to its records."""

    name: str
    read: header_values.Reader
    describe: Callable[[Any], str]
    """What a value means, as a proposal's card says it: ``at most 5 entries a run``."""


class Header(Struct, frozen=True):
    """What a script declares. ``None`` means that the workspace's own setting applies."""

    name: str
    triggers: tuple[str, ...] = (ON_DEMAND.name,)
    schedule: str | None = None
    """5 or 6 cron fields or an ``@`` alias."""
    timezone: str | None = None
    """IANA name."""
    watch: tuple[str, ...] = ()
    """Directories or globs, relative to the workspace."""
    event: tuple[str, ...] = ()
    """Event names, ``*`` allowed."""
    description: str = ""
    grants: tuple[str, ...] | None = None
    """Upper bound of the primitives the script may call."""
    args: tuple[str, ...] = ()
    timeout: float | None = None
    """Seconds."""
    memory_mb: int | None = None
    max_calls: int | None = None
    catch_up: Literal["none", "latest", "all"] | None = None
    overlap: Literal["skip", "queue"] | None = None
    retries: int | None = None
    jitter: float | None = None
    """Seconds."""
    raw: tuple[HeaderLine, ...] = ()
    own_values: Mapping[str, Any] = {}
    """What it says under keys of domains."""

    def line_of(self, key: str) -> int | None:
        """The 1-based line on which ``key`` stands."""
        return next((line.line for line in self.raw if line.key == key), None)

    def value_of(self, key: str) -> Any:
        """The value under ``key``, also of a key that has no attribute here; ``None`` where the header has none."""
        if key in Header.__struct_fields__:
            return getattr(self, key)
        if key in self.own_values:
            return self.own_values[key]
        return next((_READERS[line.key](line.value) for line in self.raw if line.key == key), None)


_READERS: Mapping[str, header_values.Reader] = {
    "name": header_values.read_name,
    "trigger": header_values.choices_reader(*TRIGGER_NAMES),
    **header_readers(),
    "description": header_values.read_text,
    "grants": header_values.read_words_or_none,
    "args": header_values.read_identifiers,
    "timeout": header_values.seconds_reader(0.001, 86400),
    "memory_mb": header_values.integer_reader(16, 1 << 16),
    "max_calls": header_values.integer_reader(1, 10**9),
    "catch_up": header_values.choice_reader("none", "latest", "all"),
    "overlap": header_values.choice_reader("skip", "queue"),
    "retries": header_values.integer_reader(0, 100),
    "jitter": header_values.seconds_reader(0, 86400),
}
_SCRIPT_KEYS = ("name", "description", "args")
_FIELDS = {"trigger": "triggers"}  # where key and field differ


def parse_header(
    source: str, file: str, *, kind: Literal["agent", "script"] = "agent", own_keys: Sequence[HeaderKey] = ()
) -> tuple[Header | None, list[Finding]]:
    """The header of a script, and the findings about it; where there are any, the header is ``None``.

    An agent must have one, with a ``name``. A shared script (``kind="script"``) may have none, or any prose; its header
    has only ``name``, ``description`` and ``args``, and its name is its file's by default. ``own_keys``: what domains
    declare; ``domains.installed_domains`` knows them.
    """
    source = normalise_text(source)
    tree = parse_script(source, file)
    if isinstance(tree, Finding):
        return None, [tree]
    docstring = _find_docstring(tree, source)
    if docstring is None:
        if kind == "script":
            return Header(_file_stem(file)), []
        rule = RULES["header-missing"]
        return None, [Finding(rule.id, "the agent has no header", Place(file, 1, 1), rule.remedy)]
    first, lines = docstring
    reading = _HeaderReader(file, kind, own_keys)
    for number, line in enumerate(lines, first):
        reading.take_line(number, line)
    return reading.build_header(first)


class _HeaderReader:
    """Reads a header line by line."""

    def __init__(self, file: str, kind: str, own_keys: Sequence[HeaderKey]) -> None:
        self._file = file
        self._kind = kind
        self._own = {key.name: key.read for key in own_keys}
        self._readers = {**_READERS, **self._own}
        self._keys = _SCRIPT_KEYS if kind == "script" else tuple(self._readers)
        self._lines: dict[str, HeaderLine] = {}
        self._last = ""
        self.findings: list[Finding] = []

    def take_line(self, number: int, line: str) -> None:
        """Read one line."""
        if not line.strip():
            return
        if line[0] in " \t":
            if self._last == "description":
                old = self._lines["description"]
                joined = f"{old.value} {line.strip()}".strip()
                self._lines["description"] = HeaderLine(old.key, joined, old.line)
            elif self._kind == "agent":
                self._add_finding("header-line", "", number, "only a description has a second line", "Join the lines.")
            return
        match = _KEY.match(line.rstrip())
        if match is None:
            self._last = ""
            if self._kind == "agent":
                message = f"{line.strip()[:60]!r} is not a `key: value` line"
                self._add_finding("header-line", "", number, message)
            return
        self._take_key(match[1], (match[2] or "").strip(), number)

    def _take_key(self, key: str, value: str, number: int) -> None:
        self._last = key
        if key not in self._keys:
            near = get_close_matches(key.lower(), self._keys, 1, 0.6)
            if self._kind == "script" and not near:
                return  # prose with a colon
            remedy = f"Did you mean `{near[0]}`?" if near else f"Known keys: {', '.join(self._keys)}."
            self._add_finding("header-key", key, number, f"unknown key {key!r}", remedy)
        elif key in self._lines:
            message = f"{key!r} is given twice, first on line {self._lines[key].line}"
            self._add_finding("header-duplicate", key, number, message)
        else:
            self._lines[key] = HeaderLine(key, value, number)

    def build_header(self, first: int) -> tuple[Header | None, list[Finding]]:
        """The header of the lines that were read, which begin at line ``first``, and the findings."""
        values: dict[str, object] = {}
        for key, line in self._lines.items():
            try:
                values[_FIELDS.get(key, key)] = self._readers[key](line.value)
            except header_values.BadValue as bad:
                self._add_finding(f"header-{bad.rule}", key, line.line, bad.message, bad.remedy)
        if "name" not in self._lines:
            if self._kind == "agent":
                self._add_finding("header-name", "name", first, "the header has no name")
            else:
                values["name"] = _file_stem(self._file)
        self._check_triggers(values, first)
        if self.findings:
            self.findings.sort(key=lambda finding: (finding.place.line or 0, finding.rule))
            return None, self.findings
        fields = {key: value for key, value in values.items() if key in Header.__struct_fields__}
        own = {key: value for key, value in values.items() if key in self._own}
        return Header(raw=tuple(self._lines.values()), own_values=own, **fields), []  # type: ignore[arg-type]

    def _check_triggers(self, values: dict[str, object], first: int) -> None:
        """A trigger needs its key, and the key its trigger: without it the agent would never run."""
        if "trigger" in self._lines and "triggers" not in values:
            return  # refused already
        triggers = values.get("triggers", (ON_DEMAND.name,))
        assert isinstance(triggers, tuple)
        at = self._lines["trigger"].line if "trigger" in self._lines else first
        for kind in TRIGGER_KINDS:
            trigger, key = kind.name, kind.key or kind.sample
            if kind.key and trigger in triggers and key not in self._lines:
                message = f"trigger {trigger} needs a `{key}:` line"
                self._add_finding("header-trigger", key, at, message, f"Add a line `{key}: {kind.example}`.")
            elif key in self._lines and trigger not in triggers:
                message = f"`{key}:` has no effect without trigger {trigger}"
                remedy = f"Write `trigger: {trigger}`, or a list with it, or delete the line."
                self._add_finding("header-trigger", key, self._lines[key].line, message, remedy)

    def _add_finding(self, rule: str, field: str, line: int, message: str, remedy: str = "") -> None:
        place = Place(self._file, line, 1, field or None)
        self.findings.append(Finding(rule, message, place, remedy or RULES[rule].remedy))


def _find_docstring(tree: ast.Module, source: str) -> tuple[int, list[str]] | None:
    """The docstring's first line number and its raw lines without quotes and common indentation.

    Raw, not evaluated: an escape or a continued line would shift the line numbers.
    """
    if not tree.body or ast.get_docstring(tree, clean=False) is None:
        return None
    node = tree.body[0]
    above = source.split("\n", node.end_lineno or 0)[: node.end_lineno]  # all of a source is split letter by letter
    segment = ast.get_source_segment("\n".join(above), node) or ""
    match = _OPENING.match(segment)
    if match is None:  # in parentheses, which nobody would write
        return None
    lines = segment[match.end() :].removesuffix(match[1]).split("\n")
    rest = [line for line in lines[1:] if line.strip()]
    indent = min((len(line) - len(line.lstrip(" \t")) for line in rest), default=0)
    return node.lineno, [lines[0].lstrip(" \t"), *(line[indent:] for line in lines[1:])]


def _file_stem(file: str) -> str:
    return PurePosixPath(file).stem
