"""Which page does what a text sends its reader to a command for: refusals, lines that need a look, what cards say.

Texts name commands, which is right in a terminal. A page shows its own way instead: ``link_commands`` puts a link in
the place of each command that has a page, and says of the others that they are for the terminal of the machine.
"""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from functools import cache, partial
from typing import Final
from urllib.parse import quote

from markupsafe import Markup, escape
from msgspec import Struct

from cleared.base.money import group_thousands
from cleared.base.terminal import escape_lines, escape_text


class CommandPage(Struct, frozen=True):
    """What some commands are on the page. ``commands``: without the name of the program. ``label``: what the link says.
    ``one``: the address of the one thing that the first argument names, which takes the place of ``{}``; ``argument``:
    what such an argument looks like."""

    commands: tuple[str, ...]
    address: str
    label: str
    one: str = ""
    argument: str = ""


_NUMBER: Final = r"\d+"
_NAME: Final = r"[a-z][\w-]*"
PAGES: Final = (
    CommandPage(("journal open",), "/books/opening", "Opening balances"),
    CommandPage(("reconcile",), "/books/reconcile", "Reconcile", "/books/reconcile?account={}", _NUMBER),
    CommandPage(("period list", "period close", "period reopen"), "/books/months", "Close months"),
    CommandPage(("accounts list", "accounts add"), "/books/accounts", "Chart of accounts"),
    CommandPage(
        ("accounts rename", "accounts close", "accounts reopen"),
        "/books/accounts",
        "Chart of accounts",
        "/books/accounts/{}",
        _NUMBER,
    ),
    CommandPage(("bank list", "bank add"), "/bank", "Bank accounts"),
    CommandPage(("import files", "import"), "/", "Hand in a bank file"),
    CommandPage(
        ("config set", "config unset", "config get"), "/settings", "Settings", "/settings/{}", r"[a-z_]+(?:\.\w+)+"
    ),
    CommandPage(("config approve",), "/settings", "Settings"),
    CommandPage(("teach", "improve"), "/rules", "Rules"),
    CommandPage(
        ("receipt add", "receipt list", "receipt missing", "receipt link", "receipt unlink", "receipt remove"),
        "/receipts",
        "Receipts",
    ),
    CommandPage(
        (
            *("queue list", "queue show", "queue approve", "queue correct", "queue reject", "queue answer"),
            *("queue skip", "queue agree", "queue undo", "review", "agent approve", "agent reject", "agent diff"),
        ),
        "/queue",
        "Queue",
    ),
    CommandPage(("journal list", "journal balance", "search", "split"), "/books", "Books"),
    CommandPage(("journal void", "why"), "/books", "Books", "/books/entries/{}", r"\d{4}-\d\d-\d+"),
    CommandPage(
        (
            *("agent run", "agent show", "agent check", "agent history", "agent rollback", "agent disable"),
            *("agent enable", "agent list", "agent stats"),
        ),
        "/agents",
        "Agents",
        "/agents/{}",
        _NAME,
    ),
    CommandPage(("run list", "run show"), "/runs", "Runs"),
    CommandPage(("check",), "/books/check", "Check the books"),
    CommandPage(("report",), "/reports", "Reports"),
    CommandPage(("chat", "meta"), "/chat", "Chat"),
    CommandPage(("loop status", "loop jobs", "loop tree", "loop show"), "/loop", "Jobs of the loop"),
    CommandPage(("status", "schedule"), "/", "Today"),
)
TERMINAL_ONLY: Final = frozenset(
    (
        *("accept", "backup", "bisect", "bridge", "cycle", "definition", "demo", "doctor", "down", "event", "fleet"),
        "fleet add",
        *("export", "import undo", "init", "journal add", "journal adjust", "key", "llm", "logs", "loop", "mcp"),
        *("passkey", "primitives", "queue expire", "queue reviewers", "recover", "replay", "restore", "revert", "rpc"),
        *("server", "service", "start-from", "sync", "task", "test", "token", "transfers", "trust", "up"),
        *("webhook", "work"),
        *("agent certify", "agent new", "agent propose", "agent shadow", "config restore", "key protect", "llm key"),
        *("llm check", "loop serve", "loop stop", "passkey add", "passkey list", "service install", "test add"),
        *("token add", "webhook add", "webhook list", "agent propose config.yaml"),
    )
)
"""Commands for whoever sets the machine up or writes agents: whole, or by their first word."""
_QUOTED: Final = r"“[^”]{0,1000}”|(?<!\w)'(?:\\.|[^'\\])*'(?!\w)|(?<!\w)\"(?:\\.|[^\"\\])*\"(?!\w)"
"""What ``quote_text`` and ``repr`` make of a text of others, which nothing in it can end."""
_MORE: Final = re.compile(
    r"(?: (?:--again \w+|--[a-z][a-z-]*|…|\"[^\"]*\"|'[^']*'|[\w.-]+=[\w.…-]*[\w…]|-?\d[\w.:-]*\w|\d|(?:true|false)\b"
    r"|[A-Z]\d+(?:-[0-9a-f]+)?(?!\w)|[A-Z]+(?:[_|-][A-Z]+)*(?![a-z])))*"
)
"""What may follow a command in a sentence: options, placeholders, numbers, quoted texts."""
_AMOUNT: Final = re.compile(r"(?<![\w.,=-])-?\d{4,}\.\d+(?![\w.,]*\w)")
"""An amount of a thousand or more; no part of a version, of a date, of what is typed into a command."""
_INSTANT: Final = re.compile(r"(?<![\w.,=-])\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z(?!\w)")
"""A time on record, in UTC."""
_FOR_SCRIPTS: Final = r"\s*In a script: cleared [^\n.“\"']*\.?"
"""A sentence that nobody at a page has use for."""
FIELDS: Final = {
    "--despite REASON": "“All the same, because”",
    "--outcome duplicate --of ENTRY": "“Duplicate”",
    "--of ENTRY": "“A duplicate of”",
    "--outcome personal": "“Personal”",
    "--outcome suspense": "“Not clear”",
    "--line ACCOUNT=AMOUNT": "“Several accounts”",
    "--line": "“Several accounts”",
    "--withdraw": "“Take a reconciliation back”",
    "--account N": "“Account”",
    "--period": "“Period”",
    "--compare": "“Beside”",
    "--with-pending": "“Although decisions wait”",
    "--filed": "“Filed with the authorities”",
    "--on": "“First day without entries”",
    "Pass --reason": "Fill in “Why”",
    "--reason": "“Why”",
    "--mixed": "“Amounts of both signs are meant”",
    "--balance": "“What the statement says”",
    "--account ID": "“It is of”",
    "--skip-lines N": "“Lines above the heads of the columns”",
    "run the command again": "try it again",
    "runs the same command": "does the same",
}
"""Options that texts name by themselves → the field of the page that says the same; and what only a terminal says."""


def find_page(command: str) -> CommandPage | None:
    """The page that does what a command does; None where only a terminal does it."""
    return _pages_by_command().get(command) or _pages_by_command().get(command.partition(" ")[0])


def link_commands(text: str, prefix: str, thousands: str = "", zone: tzinfo | None = None) -> Markup:
    """A text with a link in the place of each command in it. What stands in quotation marks are words of others, such
    as a bank's or a file's name, and stays as it is.

    ``prefix``: what the addresses of the pages begin with; ``thousands``: what stands between thousands of amounts;
    ``zone``: that of the books, in which times are told.
    """
    say_plainly = partial(_say_plainly, thousands=thousands, zone=zone)
    parts, at = [], 0
    for match in _pattern().finditer(text):
        if match["quoted"]:
            parts += [say_plainly(text[at : match.start()]), escape_text(match["quoted"])]
            at = match.end()
            continue
        if match["script"]:
            parts.append(say_plainly(text[at : match.start()]))
            at = match.end()
            continue
        page, start, end = find_page(match["command"]), match.start(), match.end()
        address = ""
        if page is not None:
            one = re.compile(f" ({page.argument})(?![\\w-])").match(text, end) if page.one else None
            address, end = (page.one.format(quote(one[1])), one.end()) if one else (page.address, end)
        if (more := _MORE.match(text, end)) is not None:
            end = more.end()
        said = escape_text(text[start:end])
        is_alone = text[start - 1 : start] == "(" and text[end : end + 1] == ")"
        if page is not None:
            if is_alone and not text[end + 1 :]:  # at the end of a line that needs a look it is the way on
                start, end = start - 1, end + 1
            link = Markup('<a class="way" href="{}">{}</a>').format(prefix + address, page.label)
        elif is_alone:
            link = Markup("in the machine’s terminal: <code>{}</code>").format(said)
        else:
            link = Markup("<code>{}</code> (in the machine’s terminal)").format(said)
        parts += [say_plainly(text[at:start]), link]
        at = end
    return Markup("").join([*parts, say_plainly(text[at:])])


def describe_moment(text: str, zone: tzinfo | None) -> str:
    """A time on record, which is in UTC, in the time zone of the books; anything else as it is."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M}" if at.tzinfo is not None and zone is not None else text


def _say_plainly(text: str, thousands: str, zone: tzinfo | None) -> Markup:
    """A text without a command, with the page's fields in the place of options, and amounts and times as they are
    read."""
    for option, field in FIELDS.items():
        text = re.sub(rf"(?<![\w-]){re.escape(option)}(?![\w-])(?: …)?", field, text)
    text = _AMOUNT.sub(lambda found: group_thousands(found[0], thousands), text)
    text = _INSTANT.sub(lambda found: describe_moment(found[0], zone), text)
    return escape(escape_lines(text))


@cache
def _pages_by_command() -> dict[str, CommandPage]:
    return {command: each for each in PAGES for command in each.commands}


@cache
def _pattern() -> re.Pattern[str]:
    known = sorted((*_pages_by_command(), *TERMINAL_ONLY), key=len, reverse=True)
    command = rf"\bcleared (?P<command>{'|'.join(map(re.escape, known))})(?![\w-])"
    return re.compile(f"(?P<quoted>{_QUOTED})|(?P<script>{_FOR_SCRIPTS})|{command}")
