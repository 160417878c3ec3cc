"""Checking, trying and proposing the draft of a session, and what the gate last said of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from cleared.base.errors import ClearedError
from cleared.base.short_text import list_lines
from cleared.domains.installed_domains import load_comparisons
from cleared.gate.dry_run import DryRun
from cleared.gate.dry_run_inputs import SAMPLE_DATA
from cleared.gate.examination import Gate
from cleared.gate.impact import describe_not_comparable, example_line
from cleared.gate.lint_rules import finding_to_dict, result_to_dict
from cleared.gate.proposals.author import Author
from cleared.gate.proposals.effect_sections import list_groups
from cleared.gate.proposals.proposal_card import list_card_lines, make_card
from cleared.gate.proposals.submission import GateFailed, propose_changes
from cleared.meta.tools.open_proposals import adopt_proposals, refuse_surprises
from cleared.meta.tools.output_bounds import quote_data
from cleared.meta.tools.remedy_words import say_to_model
from cleared.meta.tools.session_files import SessionFiles
from cleared.meta.tools.tool import Evidence, Tool, ToolFailed, ToolResult, make_schema
from cleared.service.operations.table import OPERATIONS
from cleared.workspace.location import Layout
from cleared.workspace.settings.loading import load_config
from cleared.workspace.settings.setting_keys import to_plain_values

MAX_FINDINGS: Final = 30
_MAX_EXAMPLES: Final = 40
_MAX_ROWS: Final = 10
"""Differences that are shown beside their groups."""
_SETTINGS: Final = frozenset({"business", "fiscal", "bank_accounts", "thresholds", "import.profiles"})
"""Parts of ``config.yaml`` that a session may propose to change. The others hold scripts and models back, name
programs that are started or places that are written to: a person changes those without a model's help."""
_IN_PARTS: Final = "import"
"""A section of which a session may change a part."""


class GateTools:
    """The tools that end in a proposal. ``author``: the name on its card."""

    def __init__(self, files: SessionFiles, author: str) -> None:
        self._files, self._author = files, author
        self._built_on: list[str] = []
        """The folders of the proposals that the draft builds on, as far as its files were last read."""

    def make_tools(self) -> list[Tool]:
        name = {"type": "string", "minLength": 1, "maxLength": 120, "description": "The agent: ingest"}
        return [
            Tool(
                "agent_check",
                "All checks of the gate over your draft, as propose makes them: language, types, dry runs, invariants, "
                "past runs, tests. With name: over that agent only. Nothing is proposed.",
                make_schema(name=name),
                self._check_draft,
            ),
            Tool(
                "try",
                "Run an agent as your draft has it, on today's books and the files that wait; nothing is kept. Gives "
                "its result, log, messages, records and questions. With sample: over made-up files.",
                make_schema(("name",), name=name, sample={"type": "boolean", "default": False}),
                self._try_draft,
            ),
            Tool(
                "history_try",
                "What an agent of your draft would have done in its past runs, compared with the approved version.",
                make_schema(
                    ("name",), name=name, runs={"type": "integer", "minimum": 1, "maximum": 500, "default": 50}
                ),
                self._try_on_history,
            ),
            Tool(
                "propose",
                "Put your draft through the gate and propose it, with a card for the owner, who decides. A newer "
                "proposal of this session takes the older one's place.",
                make_schema(
                    ("message",),
                    message={
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 2_000,
                        "description": "What will be different for the owner, in one or two plain sentences",
                    },
                ),
                self._propose_draft,
                acts=True,
            ),
        ]

    def find_evidence(self) -> Evidence:
        """What the gate last said of exactly what the draft holds now."""
        with self._files.open_commit():
            changes = self._files.list_changes()
        verdict = self._files.overlay.read_verdict()
        paths = tuple(sorted(changes))
        if verdict.get("state") != self._files.overlay.state or verdict.get("verdict") not in (
            "blocked",
            "passed",
            "proposed",
        ):
            return Evidence("unchecked" if changes else "nothing_written", paths=paths)
        proposal = verdict.get("proposal")
        if not changes and verdict["verdict"] != "proposed":
            return Evidence("nothing_written")
        findings = tuple(str(f) for f in verdict.get("findings") or ())
        card = str(verdict.get("card") or "")
        return Evidence(verdict["verdict"], str(proposal) if proposal else None, findings, paths, card)

    def _check_draft(self, arguments: Mapping[str, Any]) -> str:
        name = arguments["name"]
        changes = self._read_changes(may_be_empty=name is not None)
        if name is not None:
            found = OPERATIONS["agent.check"].function(self._files.host, name, changes)
            return _describe_report(found["passed"], found["stages"], found["findings"], f"agents/{name}.py")
        with Gate(self._files.host) as gate:
            report = gate.examine(gate.gather_candidate(list(changes), texts=changes))
        findings = [finding_to_dict(f) for f in report.findings]
        self._save_verdict("passed" if report.passed else "blocked", findings)
        stages = {file: [result_to_dict(r) for r in results] for file, results in report.results.items()}
        return _describe_report(report.passed, stages, findings, "Your draft (" + ", ".join(sorted(changes)) + ")")

    def _try_draft(self, arguments: Mapping[str, Any]) -> str:
        log: list[str] = []
        host = replace(self._files.host, show_message=log.append)
        changes = self._read_changes(may_be_empty=True)
        scripts = {path: data for path, data in changes.items() if path.startswith(("agents/", "scripts/"))}
        if arguments["sample"]:
            with Gate(self._files.host) as gate:
                runs = gate.rehearse(arguments["name"], texts=scripts)
            return "\n".join(_describe_rehearsal(run) for run in runs if run.label == SAMPLE_DATA)
        ran = OPERATIONS["agent.dry_run"].function(host, arguments["name"], scripts, None)
        lines = [f"{arguments['name']} {ran['status']}; nothing of it is kept."]
        if ran["error"]:
            error = ran["error"]
            where = f"line {error['line']}: " if error["line"] else ""
            lines.append(_one_line(f"{where}{error['message']}. Remedy: {say_to_model(error['remedy'] or '')}"))
        shown = [f"result: {json.dumps(ran['result'], ensure_ascii=False, default=str)}"]
        shown += [f"log: {text}" for text in log[:_MAX_EXAMPLES]]
        shown += [f"message: {message['subject']}\n{message['text']}" for message in ran["messages"]]
        shown += [f"question: {card['title']}" for card in ran["cards"][:_MAX_EXAMPLES]]
        shown += _list_records({noun: ran.get(noun) or () for noun in load_comparisons()})
        return "\n".join([*lines, quote_data("\n".join(shown), "the run")])

    def _try_on_history(self, arguments: Mapping[str, Any]) -> str:
        changes = self._read_changes(may_be_empty=True)
        found = OPERATIONS["agent.compare"].function(self._files.host, arguments["name"], changes, arguments["runs"])
        counts = f"{found['changed']} entries changed, {found['added']} added, {found['removed']} removed"
        lines = [f"Over the last {found['runs']} runs of {arguments['name']}: {counts}."]
        for key, label in (("before", "Approved version"), ("after", "Your version")):
            lines.append(
                f"{label}: " + (", ".join(f"{n} {what}" for what, n in sorted(found[key].items())) or "nothing")
            )
        if found["new_primitives"]:
            lines.append("It calls for the first time: " + ", ".join(found["new_primitives"]))
        if found["not_comparable"]:
            lines.append(describe_not_comparable(found["not_comparable"]))
        lines += [f"Warning: {text}" for text in found["warnings"]]
        details = [f"New failure: {_one_line(text)}" for text in found["failed"][:_MAX_EXAMPLES]]
        details += [group.title for group in list_groups(found["entries"])]
        details += list_lines([example_line(entry) for entry in found["entries"]], _MAX_ROWS)
        return "\n".join([*lines, *([quote_data("\n".join(details), "the books")] if details else [])])

    def _propose_draft(self, arguments: Mapping[str, Any]) -> ToolResult:
        overlay = self._files.overlay
        changes = self._read_changes(may_be_empty=False)
        verdict = overlay.read_verdict()
        current = verdict.get("verdict") == "proposed" and verdict.get("state") == overlay.state
        refuse_surprises(self._files, self._own_proposal, changes)
        try:
            proposal, is_new = propose_changes(
                self._files.host,
                [],
                texts=changes,
                message=arguments["message"],
                author=Author(self._author, is_human=False, is_asked=True),
                instead_of=[self._own_proposal, *self._built_on],
            )
        except GateFailed as error:
            findings = [finding_to_dict(f) for f in error.report.findings]
            self._save_verdict("blocked", findings)
            raise ToolFailed(
                "the draft does not pass the gate; nothing was proposed:\n" + "\n".join(_finding_lines(findings)),
                "Correct what the findings name, and check with agent_check before you propose again.",
            ) from None
        card = "\n".join(list_card_lines(make_card(proposal)))
        self._save_verdict("proposed", [], proposal.id, proposal.folder, card)
        self._files.note_seen([proposal.folder])
        known = "It was proposed before, unchanged" if not is_new and current else "Proposed as"
        shown = quote_data(card, "the proposal's card, which the owner reads")
        return ToolResult(
            f"{known} {proposal.id}: {proposal.title}. Nothing is live until the owner approves.\n{shown}"
        )

    @property
    def _own_proposal(self) -> str:
        return str(self._files.overlay.read_verdict().get("last_proposal") or "")

    def _read_changes(self, *, may_be_empty: bool) -> dict[str, bytes | None]:
        """What would be proposed. Raises ``ToolFailed`` where that is nothing, or touches forbidden settings."""
        with self._files.open_commit():
            self._built_on = adopt_proposals(self._files, self._own_proposal)
            changes = self._files.list_changes()
            if Layout.config_file in changes:
                _refuse_settings(self._files.read_approved(Layout.config_file), changes[Layout.config_file])
        if not changes and not may_be_empty:
            raise ToolFailed(
                "your draft is empty: it differs in nothing from what is approved",
                "Write the change first, with write_file or apply_patch. To look at an agent as it is, give its name.",
            )
        return changes

    def _save_verdict(
        self, verdict: str, findings: Sequence[Mapping[str, Any]], proposal: str = "", folder: str = "", card: str = ""
    ) -> None:
        overlay = self._files.overlay
        before = overlay.read_verdict()
        overlay.save_verdict(
            {
                "state": overlay.state,
                "verdict": verdict,
                "proposal": proposal,
                "card": self._files.host.redactor.redact_text(card),
                "findings": _finding_lines(findings),
                "last_proposal": folder or before.get("last_proposal") or "",
            }
        )


def _refuse_settings(old: bytes | None, new: bytes | None) -> None:
    """Raises ``ToolFailed`` where a new ``config.yaml`` changes more than a session may propose."""
    if new is None:
        raise ToolFailed("config.yaml cannot be removed", "Write it as it is approved.")
    try:
        before, after = (to_plain_values(load_config((data or b"").decode("utf-8-sig"))) for data in (old, new))
    except (ClearedError, UnicodeDecodeError) as error:
        raise ToolFailed(f"config.yaml is not valid: {error}", "Correct it.") from None
    before, after = _list_parts(before), _list_parts(after)
    changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    refused = [key for key in changed if key not in _SETTINGS]
    if refused:
        raise ToolFailed(
            f"a session does not change these settings: {', '.join(refused)}. They hold scripts and models back",
            "Leave them as approved. Tell the owner which setting to change: cleared config set KEY VALUE.",
        )


def _list_parts(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Section → what it says; one of which a part may be changed, by its parts."""
    parts = {f"{_IN_PARTS}.{key}": value for key, value in settings.get(_IN_PARTS, {}).items()}
    return {key: value for key, value in settings.items() if key != _IN_PARTS} | parts


def _describe_rehearsal(run: DryRun) -> str:
    """What came of a dry run."""
    lines = [f"Over {run.label}; nothing of it is kept."]
    if run.error is not None:
        lines.append(_one_line(f"It fails: {run.error.message}. Remedy: {say_to_model(run.error.remedy or '')}"))
    lines += [f"The books would be wrong: {_one_line(each.message)}" for each in run.violations]
    shown = [f"result: {json.dumps(run.result, ensure_ascii=False, default=str)}"]
    shown += [f"{kind}: {text}" for kind in ("log", "message") for text in run.outputs.get(kind, ())[:_MAX_EXAMPLES]]
    shown += [f"question: {title}" for _, title in run.cards[:_MAX_EXAMPLES]]
    return "\n".join([*lines, quote_data("\n".join([*shown, *_list_records(run.records)]), "the run")])


def _list_records(records: Mapping[str, Sequence[Any]]) -> list[str]:
    """New records by what they are called: how many, and the first ones."""
    lines = []
    for noun, rows in records.items():
        lines += [f"{noun}: {len(rows)}"] if rows else []
        lines += [json.dumps(row, ensure_ascii=False, default=str)[:300] for row in rows[:_MAX_EXAMPLES]]
    return lines


def _describe_report(
    passed: bool, stages: Mapping[str, Sequence[Mapping[str, Any]]], findings: Sequence[Mapping[str, Any]], subject: str
) -> str:
    lines = [f"{subject}: {'passes the gate' if passed else 'does not pass the gate'}."]
    for file, results in stages.items():
        lines.append(f"{file}: " + ", ".join(f"{r['stage']} {r['status']}" for r in results))
    lines += _finding_lines(findings)
    warnings = [w for results in stages.values() for r in results for w in r["warnings"]]
    lines += [f"warning, stops nothing: {text}" for text in _finding_lines(warnings)]
    return "\n".join(lines)


def _finding_lines(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each finding for a model to act on: place, cause, remedy."""
    lines = []
    for f in findings[:MAX_FINDINGS]:
        place = (
            f"{f['file'] or 'draft'}"
            + (f":{f['line']}" if f["line"] else "")
            + (f":{f['column']}" if f["column"] else "")
            + (f" ({f['field']})" if f["field"] else "")
        )
        lines.append(
            _one_line(f"{place}: [{f['rule']}] {str(f['message']).rstrip('.')}. Remedy: {say_to_model(f['remedy'])}")
        )
    if len(findings) > MAX_FINDINGS:
        lines.append(f"… and {len(findings) - MAX_FINDINGS} more findings")
    return lines


def _one_line(text: str) -> str:
    return " ".join(text.split())[:1_500]
