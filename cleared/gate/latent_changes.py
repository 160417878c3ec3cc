"""What a change could do that no dry run showed: new lines that none of them reached, new texts, amounts and dates that
none of them met, and what comes of these where they are made to come.

What a person approves is what they were shown. So a change is compared with the approved version as text, too; what is
new there and did nothing yet is tried on rows made of it (*probe rows*), at each date in it, and a year later.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache, partial
from typing import Final

from msgspec.structs import replace

from cleared.base.short_text import quote_text
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import load_comparisons, load_domains, name_references
from cleared.gate.changed_code import decode_script, describe_rows, find_comment_lines, split_changed_lines
from cleared.gate.check_result import Subject
from cleared.gate.dry_run import DryRun, Setup
from cleared.gate.latent_findings import Latent, UnreachedLine
from cleared.gate.outcomes import Outcome, write_outcomes
from cleared.gate.past_runs import DryRunInput
from cleared.gate.posted_values import PostedValues
from cleared.gate.reach_marks import Mark, ReachMarks
from cleared.gate.script_changes import ScriptChanges
from cleared.gate.silent_changes import SilentSearch, list_removals, list_reversals
from cleared.gate.unmet_values import find_unmet_values, fold_constants, fold_text
from cleared.runs.approved_scripts import Script, Scripts
from cleared.sandbox.script_source import parse_script
from cleared.sandbox.used_primitives import find_grants

_MOST_SHOWN: Final = 3
_YEAR: Final = timedelta(days=365)

RunScript = Callable[[Setup, Script, DryRunInput], DryRun]


def find_latent(subject: Subject, dry_runs: Sequence[tuple[DryRunInput, DryRun]], run: RunScript) -> Latent:
    """What the new version of an agent could do beyond what its ``dry_runs`` showed: inputs, and what came of them."""
    search = _Search(subject, dry_runs, run)
    latent = Latent()
    search.add_code(latent)
    if not search.changes:
        # Under other settings the same script may do something else with what no run met.
        latent.outcomes = search.probe()
        return latent
    latent.lines = search.find_unreached()
    latent.lines += search.find_silent(latent.lines)
    latent.references = search.find_references()
    latent.values = search.values.describe()
    probed = search.probe()
    latent.outcomes = [*probed[:1], *_list_sample_effects(subject), *probed[1:]]  # neither hides the other
    if not (latent.lines or latent.references or latent.values or latent.outcomes or _shows_difference(subject)):
        # Whatever it is for, it comes later: a text cut at a length that no message had, say.
        latent.lines = search.list_new_lines()
    return latent


class _OtherScripts(Scripts):
    """Scripts of which some have another source."""

    sources: Mapping[str, str] = {}

    def load_shared(self, name: str) -> Script:
        script = super().load_shared(name)
        return replace(script, source=self.sources.get(script.file, script.source))


class _Search:
    def __init__(self, subject: Subject, dry_runs: Sequence[tuple[DryRunInput, DryRun]], run: RunScript) -> None:
        self.subject, self._run = subject, run
        self.inputs, self.results = [each for each, _ in dry_runs], [result for _, result in dry_runs]
        self.new_trees: dict[str, ast.Module] = {}
        self.old_trees: dict[str, ast.Module] = {}
        self._posted: dict[int, PostedValues] = {}
        self.differing: dict[str, tuple[bytes | None, bytes]] = {}
        """File → what was approved, and what is proposed, of the agent and of the shared scripts that it runs."""
        self.changes: dict[str, ScriptChanges] = {}
        """File → what is new in it, of the agent and of the shared scripts that it runs."""
        self._read_changes()
        self.used = self._find_used()
        layout, snapshot = subject.proposed_setup.host.layout, subject.proposed_setup.scripts.snapshot
        self.names = name_references(layout, CommittedSource(snapshot))
        changes = list(self.changes.values()) or self._read_unchanged()
        self.values = find_unmet_values(changes, self.inputs, subject.proposed_setup.host.registry)

    def _read_changes(self) -> None:
        subject = self.subject
        before, after = subject.approved_setup.scripts.texts, subject.proposed_setup.scripts.texts
        host, scripts = subject.proposed_setup.host, subject.proposed_setup.scripts
        shared = find_grants(subject.source, subject.file, host.registry, scripts.read_shared_source)[1]
        for file in (subject.file, *(host.layout.script_path(name) for name in sorted(shared))):
            old, new = before.get(file), after.get(file)
            if new is None or (old == new and (subject.old is not None or file != subject.file)):
                continue
            self.differing[file] = (None if subject.old is None else old, new)
            tree = _parse(new, file)
            if tree is None:
                continue
            known = _parse(old, file) if old is not None and subject.old is not None else None
            changes = ScriptChanges(known, tree)
            if changes.added or changes.removed:
                self.new_trees[file], self.changes[file] = tree, changes
                if known is not None:
                    self.old_trees[file] = known

    def _read_unchanged(self) -> list[ScriptChanges]:
        """The script itself as if all of it were new, where only settings change."""
        subject = self.subject
        tree = _parse(subject.source.encode("utf-8", "surrogateescape"), subject.file)
        is_other = subject.proposed_setup.host is not subject.approved_setup.host
        return [ScriptChanges(None, tree)] if is_other and tree is not None else []

    def find_unreached(self) -> list[UnreachedLine]:
        subject = self.subject
        assert subject.script is not None
        found = [
            UnreachedLine(file, piece.line, piece.text, "worked out")
            for file, changes in self.changes.items()
            for piece in self._read_posted(file, self.new_trees[file]).find_worked_out(changes)
        ]
        known = {(piece.file, piece.line) for piece in found}
        found += [
            UnreachedLine(file, piece.line, piece.text, "decided by")
            for file in (self.new_trees if subject.old is not None else ())
            for piece in self._read_posted(file, self.new_trees[file]).find_decided_by(self.changes[file])
            if (file, piece.line) not in known
        ]
        for mark in self._find_missed(self.new_trees, subject.proposed_setup, subject.script, self._is_new):
            found += _lines_of(mark, self.changes[mark.file])
        if subject.old is not None:
            found += [
                UnreachedLine(file, piece.line, piece.text, "gone")
                for file, tree in self.old_trees.items()
                for piece in self._read_posted(file, tree).find_gone(self.changes[file])
            ]
            trees = {f: t for f, t in self.old_trees.items() if self.changes[f].removed}
            for mark in self._find_missed(trees, subject.approved_setup, subject.old, self._is_gone):
                found.append(UnreachedLine(mark.file, mark.line, mark.text, "gone"))
        return list(dict.fromkeys(found))

    def list_new_lines(self) -> list[UnreachedLine]:
        """All that is new, where it takes the place of what was approved."""
        return [
            UnreachedLine(file, piece.line, piece.text, "no difference")
            for file in self.old_trees
            for piece in self.changes[file].added
        ]

    def _read_posted(self, file: str, tree: ast.Module) -> PostedValues:
        if id(tree) not in self._posted:
            registry = self.subject.proposed_setup.host.registry
            self._posted[id(tree)] = PostedValues(tree, registry, is_shared=file != self.subject.file)
        return self._posted[id(tree)]

    def _is_new(self, mark: Mark) -> bool:
        """Whether something of it is new, or it decides by a value that is."""
        changes = self.changes[mark.file]
        if mark.is_change:  # in a condition: what is posted is looked at as a text
            return any(
                piece.is_condition and not mark.nodes.isdisjoint(id(node) for node in piece.nodes)
                for piece in changes.added
            )
        if not changes.added_nodes.isdisjoint(mark.nodes):
            return True
        return mark.outcome is not None and not changes.data_names.isdisjoint(mark.names)

    def _is_gone(self, mark: Mark) -> bool:
        """A condition that is gone, or a branch in which something is."""
        gone = (
            self.changes[mark.file].removed_nodes
            if mark.outcome is None
            else self.changes[mark.file].removed_conditions
        )
        return not mark.is_change and not gone.isdisjoint(mark.nodes)

    def _find_missed(
        self, trees: Mapping[str, ast.Module], setup: Setup, script: Script, is_wanted: Callable[[Mark], bool]
    ) -> list[Mark]:
        """Of the branches and outcomes that are wanted, those that no dry run took; of such within each other the
        outermost."""
        marks = ReachMarks()
        marked = {file: marks.mark_script(tree, file) for file, tree in trees.items()}
        missed = {number: mark for number, mark in enumerate(marks.marks) if is_wanted(mark)}
        for each in self.inputs:
            if not missed:  # most changes show in the first dry runs
                break
            for number in marks.read_reached(self._run_texts(setup, script, marked, each).printed):
                missed.pop(number, None)
        closed = [mark for mark in missed.values() if mark.outcome is None]
        return [m for m in missed.values() if not any(m is not outer and m.nodes < outer.nodes for outer in closed)]

    def _run_texts(self, setup: Setup, script: Script, sources: Mapping[str, str], each: DryRunInput) -> DryRun:
        """A dry run with other sources (file → text) of the script, or of shared ones that it runs."""
        scripts = _OtherScripts(setup.host, setup.scripts.snapshot, texts=setup.scripts.texts)
        scripts.sources = sources
        source = sources.get(script.file, script.source)
        return self._run(Setup(setup.host, scripts), replace(script, source=source), each)

    def find_silent(self, said: Sequence[UnreachedLine]) -> list[UnreachedLine]:
        """What makes no difference, each piece taken back alone: beyond what is ``said``, and values that none met."""
        proposed, approved = self.subject.proposed_setup, self.subject.approved_setup
        new, old = self.subject.script, self.subject.old
        if old is None or new is None:
            return []
        search, found = SilentSearch(self.inputs), []
        known = {(each.file, each.line) for each in said}
        read_old = cache(lambda number: self._run(approved, old, self.inputs[number]))
        for file, changes in self.changes.items():
            reversals = (
                r for r in list_reversals(self.new_trees[file], changes) if not self.values.has_one_in(r.piece)
            )
            for how, setup, script, candidates, read_result in (
                ("no difference", proposed, new, reversals, self.results.__getitem__),
                ("gone", approved, old, list_removals(self.old_trees.get(file), changes), read_old),
            ):
                untold = (each for each in candidates if (file, each.piece.line) not in known)
                run = partial(self._run_text, setup, script, file)
                silent, untried = search.find_silent(untold, run, read_result)
                found += [UnreachedLine(file, piece.line, piece.text, how) for piece in silent]
                found += [UnreachedLine(file, piece.line, piece.text, "untried") for piece in untried]
        return found

    def _run_text(self, setup: Setup, script: Script, file: str, source: str, each: DryRunInput) -> DryRun:
        return self._run_texts(setup, script, {file: source}, each)

    def add_code(self, latent: Latent) -> None:
        """The lines that change; of rows of a table the words of its domain instead."""
        latent.is_new = self.subject.old is None
        for file, (known, data) in self.differing.items():
            old, new = (decode_script(each) if each is not None else None for each in (known, data))
            rows = describe_rows(file, old, new or "", self.subject.proposed_setup.host.config, self.names)
            code, prose = split_changed_lines(file, old, new or "")
            latent.files.append(file)
            latent.rows += rows
            latent.code += [] if rows else code
            latent.prose += prose if old is not None else []
            comments = find_comment_lines(old or ""), find_comment_lines(new or "")
            latent.prose += [line for line in code if rows and line.number in comments[line.is_new]]

    def find_references(self) -> list[str]:
        """What new pieces name that no record of any dry run went to."""
        constants = {str(value) for value in self._new_constants()} - self.used
        return [shown for names in self.names.values() for each, shown in names.items() if each in constants]

    def _find_used(self) -> set[str]:
        """What the records of the dry runs went to."""
        used: set[str] = set()
        for noun, comparison in load_comparisons().items():
            for result in self.results:
                used |= {ref for record in result.records.get(noun, ()) for ref in comparison.list_references(record)}
        return used

    def _new_constants(self) -> list[object]:
        pieces = [piece for changes in self.changes.values() for piece in changes.added]
        values: list[object] = [n.value for p in pieces for n in p.nodes if isinstance(n, ast.Constant)]
        return values + [sum_ for p in pieces for n in p.nodes if (sum_ := fold_constants(n)) is not None]

    def probe(self) -> list[str]:
        """What both versions do with rows made of the new values: now, at each date, and in a year. Rows of which the
        same comes are said together; first those that go where nothing went, then those that nobody would see."""
        if not self.inputs:
            return []
        sample = self.inputs[0]
        start = sample.now or self.subject.proposed_setup.host.clock.now()
        times = [
            start,
            *(self._start_of(day, start) for day in self.values.dates if day.year < date.max.year),
            start + _YEAR,
        ]
        told: dict[tuple[str, object], list[Outcome]] = {}
        known: set[object] = set()
        for at in (time for time in times if time >= start):
            when, found = "" if at == start else f"From {at:%Y-%m-%d} on: ", list(self._probe_at(at, sample))
            for outcome in found:
                # What happens to sample data today stands in the impact.
                if outcome.what not in known and (outcome.is_of_probe or at > start):
                    told.setdefault((when, outcome.end), []).append(outcome)
            known |= {outcome.what for outcome in found}
        order = sorted(told.items(), key=lambda item: (not any(o.is_new for o in item[1]), item[1][0].is_asked))
        said = [write_outcomes(when, outcomes) for (when, _), outcomes in order]
        more = len(said) - _MOST_SHOWN
        return said[:_MOST_SHOWN] + ([f"… and {more} more outcomes like these."] if more > 0 else [])

    @staticmethod
    def _start_of(day: date, start: datetime) -> datetime:
        return start.replace(year=day.year, month=day.month, day=day.day) + timedelta(days=2)

    def _probe_at(self, at: datetime, sample: DryRunInput) -> Iterator[Outcome]:
        subject = self.subject
        config, today = subject.proposed_setup.host.config, at.date()
        values = self.values
        files: dict[str, bytes] = {}
        for domain in load_domains():
            files |= domain.make_probe_files(config, today, values.combine_texts(), values.amounts)
            files |= domain.make_sample_files(config, today)
        inputs = DryRunInput("probe rows", sample.snapshot, files, at, sample.event)
        assert subject.script is not None
        new = self._run(subject.proposed_setup, subject.script, inputs)
        old = self._run(subject.approved_setup, subject.old, inputs) if subject.old is not None else None
        if new.error is not None and (old is None or old.error is None):
            yield Outcome(failure=f"With such rows it fails: {new.error.message}.", is_of_probe=True, is_new=True)
        yield from self._compare(old, new)

    def _compare(self, old: DryRun | None, new: DryRun) -> Iterator[Outcome]:
        probed, used = {fold_text(text) for text in self.values.texts}, self.used
        for noun, comparison in load_comparisons().items():
            names = self.names[noun]
            before = {comparison.summarise(r).key: r for r in (old.records.get(noun, ()) if old else ())}
            for record in new.records.get(noun, ()):
                summary = comparison.summarise(record)
                was, text = before.get(summary.key), fold_text(summary.description)
                is_probe = text == "PROBE" or any(each in text for each in probed)
                if was == record or (old is None and not is_probe):
                    continue
                refs, then = (
                    dict.fromkeys(comparison.list_references(r)) if r is not None else {} for r in (record, was)
                )
                to = [names.get(r, r) for r in refs if r not in then] or [names.get(r, r) for r in refs]
                away = [names.get(r, r) for r in then if r not in refs]
                status = comparison.summarise(was).status if was is not None else ""
                shown = f"{quote_text(summary.description, 60)} over {summary.amount}"
                yield Outcome(
                    text=shown,
                    to=tuple(to),
                    away=tuple(away),
                    now=summary.status,
                    then=status,
                    is_of_probe=is_probe,
                    is_new=not used.issuperset(refs),
                )


def _shows_difference(subject: Subject) -> bool:
    """Whether the card has any effect of the change."""
    compared = [each for each in (subject.impact, subject.sample_impact) if each is not None]
    return any(each.entries or each.outputs or each.failed for each in compared)


def _list_sample_effects(subject: Subject) -> list[str]:
    """What differs over sample data, and did in no past run: of past runs alone the card says what would differ."""
    past, sample = subject.impact, subject.sample_impact
    if past is None or sample is None or not past.runs:
        return []
    seen = {each["group"] for each in past.entries}
    entries = [each for each in sample.entries if not each["group"].endswith(", other evidence")]
    groups = {each["group"]: each for each in entries if each["group"] not in seen}
    said = [
        f"Over sample data, {quote_text(str(each['description']), 60)} over {each['amount']}: {group}."
        for group, each in groups.items()
    ]
    kinds = {each["kind"] for each in sample.outputs} - {each["kind"] for each in past.outputs} - {"log", "result"}
    said += [f"Over sample data, another {kind} than before." for kind in sorted(kinds)]
    more = len(said) - _MOST_SHOWN
    return said[:_MOST_SHOWN] + ([f"… and {more} more effects over sample data."] if more > 0 else [])


def _lines_of(mark: Mark, changes: ScriptChanges) -> list[UnreachedLine]:
    if mark.is_change:
        return [UnreachedLine(mark.file, mark.line, mark.text, "always the same")]
    if mark.outcome is not None:
        return [UnreachedLine(mark.file, mark.line, mark.text, f"never {str(mark.outcome).lower()}")]
    pieces = [p for p in changes.added if any(id(node) in mark.nodes for node in p.nodes)]
    return [UnreachedLine(mark.file, p.line, p.text, "never reached") for p in pieces]


def _parse(data: bytes, file: str) -> ast.Module | None:
    tree = parse_script(decode_script(data), file)
    return tree if isinstance(tree, ast.Module) else None
