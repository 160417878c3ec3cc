"""``bank_preview``: what a bank's file says, and what ``config.yaml`` lacks for it, to be proposed by a session."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from cleared.base.errors import ClearedError
from cleared.books.bank_files.preview import describe_file
from cleared.books.importing.bank_setup import LIABILITIES, AccountChoices, BankSetup
from cleared.books.importing.new_bank_files import (
    Understanding,
    choose_profile_name,
    plan_file,
    understand_file,
    write_setup,
)
from cleared.books.queries import read_accounts
from cleared.meta.tools.output_bounds import quote_data
from cleared.meta.tools.session_files import SessionFiles, clean_path
from cleared.meta.tools.tool import Tool, ToolFailed, make_schema
from cleared.workspace.location import Layout
from cleared.workspace.settings.loading import load_config

_SHOWN_ROWS: Final = 5
_ROW_FIELDS: Final = ("date", "amount", "description", "balance", "currency", "state")
_OPTION: Final = re.compile(r"--([a-z][a-z-]*)")
_TEXT: Final = {"type": "string", "maxLength": 200}


class BankTool:
    """The tool over one session's files."""

    def __init__(self, files: SessionFiles) -> None:
        self._files, self._host = files, files.host

    def make_tool(self) -> Tool:
        known = {
            "column": {"type": "object", "description": "date, description, amount … → the column's head in the file"},
            **dict.fromkeys(("date_format", "decimal", "delimiter", "encoding"), _TEXT),
            "sign": {"type": "string", "enum": ["as_is", "inverted"]},
            "fee": {"type": "string", "enum": ["within", "on_top"]},
            "skip_lines": {"type": "integer", "minimum": 0, "maximum": 1_000},
            "pending": {"type": "array", "items": _TEXT},
        }
        account = {
            **dict.fromkeys(("id", "name"), _TEXT),
            "type": {"type": "string", "enum": ["checking", "savings", "credit_card", "processor", "other"]},
            "ledger_account": {"type": "integer"},
            "existing": {**_TEXT, "description": "The id of one that is there, instead of a new one"},
        }
        return Tool(
            "bank_preview",
            "What a bank's file says as it is understood, and what config.yaml lacks to import it. With write, it goes "
            "into your draft of config.yaml.",
            make_schema(
                ("file_path",),
                file_path={"type": "string", "minLength": 1, "maxLength": 1_000},
                known={"type": "object", "properties": known, "description": "Only what it gets wrong, or asks"},
                account={"type": "object", "properties": account, "description": "Of the bank account"},
                write={"type": "boolean", "default": False},
            ),
            self._preview_file,
            acts=True,
        )

    def _preview_file(self, arguments: Mapping[str, Any]) -> str:
        path = clean_path(arguments["file_path"])
        known = dict(arguments["known"] or {})
        known["columns"] = {str(key): str(value) for key, value in (known.pop("column", None) or {}).items()}
        account = {key: value for key, value in (arguments["account"] or {}).items() if value is not None}
        _refuse_unknown(known, {*_KNOWN, "columns"}, "known")
        _refuse_unknown(account, set(AccountChoices.__struct_fields__), "account")
        choices = AccountChoices(**account)
        with self._files.open_commit():
            data = self._files.read_file(path)
            text = (self._files.read_file(Layout.config_file) or b"").decode("utf-8-sig")
        if data is None:
            raise ToolFailed(f"there is no file {path}", "list_dir shows which there are; new ones lie in import/.")
        found, name = self._understand(path, data, text, known, choices)
        if found.parsed is None:
            asked = [f"known.{_ask_by_key(question)}" for question in found.questions.values()]
            return f"{path} does not say everything. Find out, or ask the owner:\n" + "\n".join(asked)
        setup = plan_file(self._host, name, found.parsed, found.config, choices)
        lines = [quote_data(_describe_rows(found), path), *self._describe_setup(found, setup)]
        if found.profile is None and not setup.new and not setup.changes:
            return "\n".join([*lines, "config.yaml has all that it takes: the next run of ingest imports it."])
        draft = write_setup(text, found.profile, setup)
        load_config(draft)
        if arguments["write"]:
            self._files.write_files({Layout.config_file: draft.encode("utf-8")})
            return "\n".join([*lines, "That is in your draft of config.yaml now; propose hands it in."])
        return "\n".join([*lines, "Where that is right, call it again with write: true, then propose."])

    def _understand(
        self, path: str, data: bytes, text: str, known: dict[str, Any], choices: AccountChoices
    ) -> tuple[Understanding, str]:
        """By the draft's settings. The second is the file's name as an import has it."""
        config = load_config(text)
        name = path.removeprefix(f"{self._host.layout.import_dir}/")
        is_card = choices.type == "credit_card"
        profile = choose_profile_name(config, choices.id, name)
        try:
            places = self._host.decimal_places
            return understand_file(config, places, name, data, known, profile, is_card=is_card), name
        except ClearedError as error:
            raise ToolFailed(f"{path}: {error.message}", _in_words(error.remedy or "")) from None

    def _describe_setup(self, found: Understanding, setup: BankSetup) -> list[str]:
        """What is added to ``config.yaml``, and what only the owner can add to the chart."""
        chart = {row["account_id"] for row in read_accounts(self._host)}
        lines = []
        if found.profile is not None:
            lines.append(f"new: import.profiles.{found.profile.name} describes its columns")
        for entry in setup.new:
            lines.append("new in bank_accounts: " + json.dumps(entry, ensure_ascii=False))
            number = entry["ledger_account"]
            kind = "liability" if entry["type"] in LIABILITIES else "asset"
            if number not in chart:
                lines.append(
                    f"There is no account {number} in the chart. Choose one that is there (account.ledger_account), or "
                    f"have the owner add it first: cleared accounts add {number} NAME --type {kind}"
                )
            if "folder" in entry.get("match", {}):
                folder = f"{self._host.layout.import_dir}/{entry['match']['folder']}/"
                lines.append(f"Tell the owner: files of this account have to lie in {folder}, this one too.")
        return lines + [f"changed: bank_accounts.{key}: {value}" for key, value in setup.changes.items()]


_KNOWN: Final = ("date_format", "decimal", "delimiter", "encoding", "sign", "fee", "skip_lines", "pending")


def _refuse_unknown(given: Mapping[str, Any], names: set[str], where: str) -> None:
    """Raises ``ToolFailed`` for a key that means nothing."""
    unknown = sorted(given.keys() - names)
    if unknown:
        raise ToolFailed(f"there is no {where}.{unknown[0][:60]}", f"Give {', '.join(sorted(names))}, or leave it out.")


def _describe_rows(found: Understanding) -> str:
    """Five rows of each statement, on a line each."""
    assert found.parsed is not None
    shown = describe_file(found.parsed)
    lines = [f"format: {shown['format']}", *shown["notes"]]
    for statement in shown["statements"]:
        number = f"account {statement['account']}, " if statement["account"] else ""
        lines.append(f"{number}{len(statement['rows'])} rows, such as")
        for row in statement["rows"][:_SHOWN_ROWS]:
            lines.append("  ".join(str(row[key]) for key in _ROW_FIELDS if row[key] not in (None, "", "posted")))
    return "\n".join(lines)


def _ask_by_key(question: str) -> str:
    """A question with the key of ``known`` first, where ``cleared bank add`` has an option."""
    option = _OPTION.search(question)
    key = option[1].replace("-", "_") if option else ""
    return f"{key}: {_in_words(question)}"


def _in_words(text: str) -> str:
    """A text for the command line as one about a call: ``--date-format`` is ``date_format``."""
    return _OPTION.sub(lambda match: match[1].replace("-", "_"), text)
