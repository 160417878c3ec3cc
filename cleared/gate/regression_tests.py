"""Tests: what an agent did once, and must still do. Data, replayed in the sandbox; never imported.

One file each, ``tests/cases/NAME.json``: the clock, the files that were dropped, the books as far as the run read them,
and the effects. Which cases there are is itself approved (``approved_tests``).
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import Place, RestoreRemedy, quote_path
from cleared.base.json_values import require_text, to_plain_json
from cleared.base.short_text import shorten_text
from cleared.cards.kinds import kind_named
from cleared.domains.installed_domains import load_comparisons
from cleared.domains.record_comparison import RecordComparison
from cleared.gate.dry_run import DryRun, Setup, dry_run_script, is_input_name
from cleared.gate.file_kinds import CASES_DIR
from cleared.gate.impact import Impact, Names, describe_values
from cleared.gate.past_runs import DryRunInput
from cleared.git import Repository, Snapshot, TreeEntry, blob_id
from cleared.git.history import VersionSearch
from cleared.runs.approved_scripts import Script
from cleared.runs.attempt import Event, parse_event
from cleared.sandbox.finding import Finding, make_rules

_REASON: Final = "A test is what a person has approved; a file that changed without approval proves nothing."
RULES: Final = make_rules(
    "regression",
    {
        "regression-format": ("a test that cannot be read", _REASON, "Restore it from the commit."),
        "regression-unknown": (
            "an approval of a test that cannot be verified on this machine, or was removed",
            _REASON,
            "Say whether you trust who approved it: cleared trust.",
        ),
        "regression-changed": (
            "a test that was changed or removed without approval",
            _REASON,
            "Restore it, or propose the change.",
        ),
    },
)
OTHER_EFFECTS: Final = ("cards", "events", "lines", "files")
"""What a test expects beside records."""
_VERSION: Final = 1
_MAX: Final = 32 << 20


def path_of_test(name: str) -> str:
    """The file of a test."""
    return f"{CASES_DIR}/{name}.json"


class RegressionTest(Struct, frozen=True):
    """``expected`` holds the effects of a dry run; or, of a correction, only what its domain holds the records to (of
    entries the legs), under ``RecordComparison.correction_key``."""

    name: str
    agent: str
    why: str
    now: datetime
    inputs: Mapping[str, bytes] = {}
    books: Mapping[str, bytes] = {}
    expected: Mapping[str, Any] = {}
    run: str = ""
    event: Event | None = None
    """Why it was run; None: on demand."""
    answers: Mapping[str, Any] = {}
    """What language models had answered: the request's key → answer."""

    @property
    def path(self) -> str:
        return path_of_test(self.name)

    def render(self) -> bytes:
        data = {
            "version": _VERSION,
            "agent": self.agent,
            "why": self.why,
            "run": self.run,
            "now": format_iso(self.now),
            "inputs": {name: _encode_bytes(data) for name, data in sorted(self.inputs.items())},
            "books": {name: _encode_bytes(data) for name, data in sorted(self.books.items())},
            "expected": self.expected,
        }
        if self.event is not None:
            data["event"] = self.event.to_record()
        if self.answers:
            data["answers"] = dict(self.answers)
        return (json.dumps(data, indent=1, ensure_ascii=False, default=str) + "\n").encode("utf-8")


def parse_test(data: bytes, path: str) -> RegressionTest:
    """The inverse of ``RegressionTest.render``. Raises ``ValueError`` for anything else."""
    if len(data) > _MAX:
        raise ValueError(f"not a test: larger than {_MAX >> 20} MB")
    try:
        fields = json.loads(data)
        if fields["version"] != _VERSION:
            raise ValueError("another version")
        case = RegressionTest(
            path.rsplit("/", 1)[-1].removesuffix(".json"),
            require_text(fields["agent"]),
            require_text(fields["why"]),
            datetime.fromisoformat(fields["now"]),
            {str(k): _decode_bytes(v) for k, v in fields["inputs"].items()},
            {str(k): _decode_bytes(v) for k, v in fields["books"].items()},
            dict(fields["expected"]),
            require_text(fields["run"]),
            parse_event(fields["event"]) if "event" in fields else None,
            dict(fields.get("answers") or {}),
        )
        _check_fields(case)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"not a test: {what[:200]}") from None
    return case


def _check_fields(case: RegressionTest) -> None:
    """Anybody may have written the file. Raises ``ValueError``, or ``TypeError`` and its like for wrong types."""
    if case.now.tzinfo is None or not 1970 < case.now.year < 9000:
        raise ValueError("its clock is not a time with a zone")
    names = set(case.inputs)
    for name in names:
        parents = {name.rsplit("/", n)[0] for n in range(1, name.count("/") + 1)}
        if not is_input_name(name) or parents & names:
            raise ValueError(f"{name[:80]!r} is not the name of a file in the drop folder")
    corrected = find_corrected(case.expected)
    for correction in corrected.values():
        correction.check_correction(case.expected[correction.correction_key])
    if corrected:
        return
    compared = load_comparisons()
    if compared.keys().isdisjoint(case.expected):
        raise KeyError(next(iter(compared)))
    for name, comparison in compared.items():
        for record in case.expected.get(name, ()):
            comparison.summarise(record)


def find_corrected(expected: Mapping[str, Any]) -> dict[str, RecordComparison]:
    """What compares the corrected records that a test is about, by what they are called; none where it is about all
    that a run did."""
    return {name: each for name, each in load_comparisons().items() if each.correction_key in expected}


def _encode_bytes(data: bytes) -> Any:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def _decode_bytes(value: Any) -> bytes:
    return (
        base64.b64decode(value["base64"], validate=True)
        if isinstance(value, dict)
        else require_text(value).encode("utf-8")
    )


class FilesSnapshot(Snapshot):
    """A few files that stand in for a commit."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files
        self.commit = None
        self.tree = None
        self.hash_name = "sha1"

    def find_entry(self, path: str) -> TreeEntry | None:
        data = self.files.get(path)
        return None if data is None else TreeEntry("100644", blob_id(data, self.hash_name))

    def read_file(self, path: str) -> bytes | None:
        return self.files.get(path)

    def list_entries(self, prefix: str = "") -> dict[str, tuple[str, str]]:
        below = prefix.strip("/")
        return {
            path: ("100644", blob_id(data, self.hash_name))
            for path, data in self.files.items()
            if not below or path == below or path.startswith(f"{below}/")
        }


class RecordingSnapshot(Snapshot):
    """A commit that remembers which files were read of it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.inner = snapshot
        self.commit, self.tree, self.hash_name = snapshot.commit, snapshot.tree, snapshot.hash_name
        self.files: dict[str, bytes] = {}

    def find_entry(self, path: str) -> TreeEntry | None:
        return self.inner.find_entry(path)

    def read_file(self, path: str) -> bytes | None:
        data = self.inner.read_file(path)
        if data is not None:
            self.files[path] = data
        return data

    def list_entries(self, prefix: str = "") -> dict[str, tuple[str, str]]:
        return self.inner.list_entries(prefix)


def load_tests(snapshot: Snapshot, texts: Mapping[str, bytes | None]) -> tuple[list[RegressionTest], list[Finding]]:
    """The tests of a commit, replaced by those of a proposal (``texts``; None: removed); and findings for files that
    cannot be read."""
    paths = {p for p in snapshot.list_entries(CASES_DIR) if p.endswith(".json")} | set(texts)
    cases, findings, search = [], [], VersionSearch(snapshot)
    for path in sorted(paths):
        data = texts[path] if path in texts else snapshot.read_file(path)
        if data is None:
            continue
        try:
            cases.append(parse_test(data, path))
        except ValueError as error:
            also = f"Where nobody has approved it, take it out: git rm -- {quote_path(path)}, and commit that"
            findings.append(
                Finding(
                    "regression-format",
                    str(error),
                    Place(path),
                    search.name_version(RestoreRemedy(path, also), partial(_is_test, path)),
                )
            )
    return cases, findings


def _is_test(path: str, data: bytes) -> bool:
    try:
        parse_test(data, path)
    except ValueError:
        return False
    return True


def replay_test(case: RegressionTest, world: Setup, repo: Repository, script: Script) -> tuple[DryRun, list[str]]:
    """Replay a test: the dry run, and how it differs from what was expected, one sentence each."""
    replayed = dry_run_script(
        world,
        repo,
        FilesSnapshot(case.books),
        script,
        label=f"test {case.name}",
        inputs=case.inputs,
        now=case.now,
        event=case.event,
        answers=case.answers,
    )
    corrected = find_corrected(case.expected)
    try:
        if corrected:
            return replayed, _compare_corrected(case, corrected, replayed)
        return replayed, compare_effects(case, replayed)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):  # a file that nobody's program wrote
        return replayed, ["what it expects is not in the form of effects"]


def compare_effects(case: RegressionTest, replayed: DryRun) -> list[str]:
    """How the effects differ from the expected ones, entry by entry."""
    expected, effects = case.expected, to_plain_json(replayed.effects)
    if replayed.error is not None:
        return [f"it fails: {replayed.error}"]
    if replayed.violations:
        return [f"it breaks an invariant: {replayed.violations[0]}"]
    entries = [
        f"{e['date']} {e['description'][:60]} {e['amount']}: {describe_values(e['before'])} became "
        f"{describe_values(e['after'])}"
        for e in diff_records(expected, effects)
    ]
    return entries + [
        sentence
        for key in OTHER_EFFECTS
        if key in expected and expected[key] != effects[key]
        for sentence in _describe_differences(key, expected[key], effects[key])
    ]


def diff_records(
    before: Mapping[str, Any], after: Mapping[str, Any], names: Names | None = None
) -> list[dict[str, Any]]:
    """How the records of two effects differ, as ``Impact`` has it. ``names``: of what they may be about."""
    old, new = (
        DryRun("", None, None, {name: tuple(each.get(name, ())) for name in load_comparisons()}, (), ())
        for each in (before, after)
    )
    diff = Impact()
    diff.add_run(DryRunInput("", FilesSnapshot({}), {}), {}, old, new, names)
    return diff.entries


def _describe_differences(key: str, expected: Any, effects: Any) -> list[str]:
    """How cards, events, files or outcomes of bank lines differ, in words."""
    if isinstance(expected, Mapping):
        pairs = [(line, expected.get(line), effects.get(line)) for line in [*expected, *effects]]
        return [
            f"bank line {line}: {before or 'posted'} became {after or 'posted'}"
            for line, before, after in dict.fromkeys(pairs)
            if before != after
        ]
    before, after = Counter(map(describe_effect, expected)), Counter(map(describe_effect, effects))
    one = key.removesuffix("s")
    missing = [f"missing {one}: {text}" for text in (before - after).elements()]
    added = [f"new {one}: {text}" for text in (after - before).elements()]
    return missing + added or [f"{key}: the same in another order"]


def describe_effect(effect: Any) -> str:
    """A card (kind and title), an event or a file's name, at most 200 characters."""
    if isinstance(effect, list):
        text = f"{effect[1]} ({kind_named(effect[0]).title.lower()})"
    elif isinstance(effect, Mapping):
        text = ", ".join(f"{name} {value}" for name, value in effect.items() if value not in ("", None, [], {}))
    else:
        text = str(effect)
    return shorten_text(text, 200)


def _compare_corrected(case: RegressionTest, corrected: Mapping[str, RecordComparison], replayed: DryRun) -> list[str]:
    if replayed.error is not None:
        return [f"it fails: {replayed.error}"]
    differences: list[str] = []
    for name, correction in corrected.items():
        records = to_plain_json(list(replayed.records[name]))
        differences += correction.compare_correction(case.expected[correction.correction_key], records)
    return differences
