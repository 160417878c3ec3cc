"""What the loop of cycles knows of an engine: how it is started, and how its output is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from cleared.llm.prices import TokenCount, calculate_listed

_MOST_TEXT: Final = 4_000
_MOST_LINES: Final = 100_000
"""Lines of an output that are read, the last of them: to refuse a line takes time, too."""
_MOST_COST, _MOST_DIGITS = 1_000_000, 40
_MOST_TOKENS: Final = 10**9
TOKEN_COUNTS: Final = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""As Claude Code, Qwen Code and Codex name them; what else they count is a part of these."""
_TOO_MANY: Final = 429
_NOT_LET_IN: Final = (401, 403)
"""HTTP: without a key, or with one that counts no more."""


class EngineReport(Struct, frozen=True):
    """What an engine says of its own run, as far as its output is structured.

    ``text``: its last message. ``cost``: US dollars, None where it names none. ``limit``: its words where the usage
    limit of the account was reached. ``question``: where it stopped to ask for permission. ``refused``: its words where
    it was not let in. ``tokens``: all that it read and wrote. ``resets_at``: when that limit ends, as a Unix time; 0
    where it does not say so by itself.
    """

    text: str = ""
    cost: Decimal | None = None
    failed: bool = False
    limit: str = ""
    question: str = ""
    refused: str = ""
    tokens: int = 0
    resets_at: int = 0


class LaunchOptions(Struct, frozen=True):
    """What an argument vector depends on. ``model``: None leaves the choice to the engine."""

    model: str | None = None
    sandbox_mode: str = "danger-full-access"


class Engine(Struct, frozen=True):
    """One coding engine. The prompt always goes to its standard input, never into its arguments."""

    name: str
    title: str
    binary: str
    binary_variable: str
    """Environment variable that names another binary."""
    verified: str
    """Version of the program that the argument vector was checked with, and when."""
    install_hint: str
    arguments: Callable[[LaunchOptions], tuple[str, ...]]
    """The argument vector without the binary."""
    read_output: Callable[[str], EngineReport]
    """Reads standard output, whole or cut off."""
    describe_event: Callable[[Mapping[str, Any]], str]
    """What one event of its output says that it says or does; empty where it is not worth a line."""
    variables: tuple[str, ...]
    """Environment variables that it may see beside the usual ones: where its credential is."""
    credential_paths: tuple[str, ...]
    """Files and folders below the home folder that it reads and writes."""
    folder_variables: tuple[tuple[str, str], ...] = ()
    """Environment variables that name another folder for them, each with the name of what is the engine's in there;
    empty: all of it."""
    fenced_variables: Mapping[str, str] = {}
    """What it is told where the kernel confines it."""
    names_cost: bool = True
    """Whether its output has what it cost, in dollars."""
    file_suffix: str = ""
    """What its pid file and logs have in their names; codex, the first, has nothing."""

    @property
    def pid_file(self) -> str:
        return f".auto-loop{self.file_suffix}.pid"

    @property
    def main_log(self) -> str:
        return f"logs/auto-loop{self.file_suffix}.log"

    def list_credentials(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """The files and folders that it reads and writes beside its clone, whether they exist or not."""
        named = [Path(environment[name], below) for name, below in self.folder_variables if environment.get(name)]
        return [*(home / path for path in self.credential_paths), *(path for path in named if path.is_absolute())]

    def cycle_log(self, cycle: int, stamp: str) -> str:
        """The file of one cycle's whole output. ``stamp``: YYYYMMDD-HHMMSS."""
        return f"logs/cycle{self.file_suffix}-{cycle:04d}-{stamp}.log"


def read_json_lines(output: str) -> Iterator[Mapping[str, Any]]:
    """The JSON objects among the last lines of an output, and in lists that are a line each, as Claude Code prints
    them where its settings ask for every word; everything else is passed over."""
    for line in output.rsplit("\n", _MOST_LINES)[-_MOST_LINES:]:
        if line.lstrip().startswith(("{", "[")):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict))


def read_cost(value: object) -> Decimal | None:
    """An amount of dollars, None where it is none: written out it is to be short, and sums of it exact."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        cost = Decimal(str(value))
    except InvalidOperation:
        return None
    exponent = cost.as_tuple().exponent
    return cost if isinstance(exponent, int) and exponent >= -_MOST_DIGITS and 0 <= cost <= _MOST_COST else None


def read_tokens(usage: object, names: Sequence[str] = TOKEN_COUNTS) -> int:
    """The sum of these counts in an object; 0 for what is none."""
    counts = [usage.get(name) for name in names] if isinstance(usage, dict) else []
    return sum(count for count in counts if type(count) is int and 0 <= count <= _MOST_TOKENS)


def text_of(value: object) -> str:
    """A text of bounded length; empty for what is none."""
    return value[:_MOST_TEXT] if isinstance(value, str) else ""


def read_result_events(output: str, names_limit: Callable[[str], bool]) -> EngineReport:
    """What the last event of type ``result`` says, as Claude Code and Qwen Code print it: ``is_error``, ``result`` or
    ``error``, ``total_cost_usd``, ``usage``, ``permission_denials``, ``api_error_status``. Without one, as the engine
    was ended, the tokens of its messages and their price. ``names_limit``: whether a message is about a usage limit."""
    report: EngineReport | None = None
    messages: dict[str, tuple[str, Mapping[str, Any]]] = {}
    resets_at = 0
    for event in read_json_lines(output):
        message = event.get("message")
        if event.get("type") == "assistant" and isinstance(message, dict) and isinstance(message.get("usage"), dict):
            messages[text_of(message.get("id"))] = (
                text_of(message.get("model")),
                message["usage"],
            )  # said anew each time
        elif event.get("type") == "rate_limit_event" and isinstance(event.get("rate_limit_info"), dict):
            info = event["rate_limit_info"]
            rejected = info.get("status") == "rejected" and type(info.get("resetsAt")) is int
            resets_at = info["resetsAt"] if rejected else 0
        elif event.get("type") == "result":
            error = event.get("error")
            text = text_of(event.get("result")) or text_of(error.get("message") if isinstance(error, dict) else error)
            failed = event.get("is_error") is True
            status = event.get("api_error_status")
            limit = (text or "HTTP 429") if failed and (names_limit(text) or status == _TOO_MANY) else ""
            refused = (text or f"HTTP {status}") if failed and status in _NOT_LET_IN else ""
            denied = event.get("permission_denials")
            question = f"it was not allowed to use a tool: {denied}"[:400] if denied else ""
            cost, tokens = read_cost(event.get("total_cost_usd")), read_tokens(event.get("usage"))
            report = EngineReport(text, cost, failed, limit, question, refused, tokens, resets_at if limit else 0)
    if report is not None:
        return report
    costs = [_price_message(model, usage) for model, usage in messages.values()]
    known = [cost for cost in costs if cost is not None]
    return EngineReport(
        cost=sum(known, Decimal(0)) if known else None,
        tokens=sum(read_tokens(usage) for _, usage in messages.values()),
    )


def _price_message(model: str, usage: Mapping[str, Any]) -> Decimal | None:
    """What a message cost by the list of prices, in US dollars; None for a model that it does not know."""
    plain, output, written, read = (read_tokens(usage, [name]) for name in TOKEN_COUNTS)
    return calculate_listed(TokenCount(plain + written + read, output, read, written), model, "anthropic")


def describe_message(event: Mapping[str, Any]) -> str:
    """What an assistant's message says and which tools it uses, as Claude Code and Qwen Code print it."""
    message = event.get("message")
    content = message.get("content") if event.get("type") == "assistant" and isinstance(message, dict) else None
    said = []
    for part in content if isinstance(content, list) else []:
        if isinstance(part, dict) and part.get("type") == "text":
            said.append(text_of(part.get("text")))
        elif isinstance(part, dict) and part.get("type") == "tool_use":
            said.append(f"{text_of(part.get('name'))}: {describe_use(part.get('input'))}")
    return "; ".join(each for each in said if each)


def describe_use(value: object) -> str:
    """What a tool is used on: the first text among its arguments."""
    texts = [text for text in value.values() if isinstance(text, str)] if isinstance(value, dict) else []
    return text_of(texts[0]) if texts else ""
