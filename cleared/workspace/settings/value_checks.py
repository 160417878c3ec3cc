"""What makes a value of the right type still a wrong one. Each check returns the complaint, or None."""

from __future__ import annotations

import base64
import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from cleared.base import money
from cleared.base.safe_names import relative_problem
from cleared.workspace.location import USED_FOLDERS
from cleared.workspace.settings.address_checks import (
    check_base_url,
    check_host_name,
    check_mail_address,
    check_model_name,
    check_push_hosts,
    check_variable,
)
from cleared.workspace.settings.ai_cycle_section import ONE_LINE_TEXTS, LoopAi, Tasks
from cleared.workspace.settings.bank_section import BankAccount, CsvProfile, Match
from cleared.workspace.settings.column_checks import check_columns, nearest_names
from cleared.workspace.settings.model import (
    Agent,
    AutoRevert,
    Business,
    Config,
    Fiscal,
    Gate,
    Git,
    Import,
    Limits,
    Llm,
    Lock,
    Loop,
    ModelPrice,
    Notifications,
    Paths,
    Receipts,
    Review,
    Reviewer,
    Sandbox,
    SelfImprovement,
    Thresholds,
    Triggers,
    Webhooks,
)

Check = Callable[[Any], str | None]

_ID = re.compile(r"[a-z0-9_-]{1,60}")
_SET_BY_HOST = r"(?i)path|ci$|tmpdir|(?:git|cleared|ld|dyld)_"
_LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1"}


def _check_currency(value: str) -> str | None:
    try:
        money.currency_exponent(value)
    except ValueError as error:
        return str(error)
    return None


def _check_timezone(value: str) -> str | None:
    if value == "UTC":
        return None
    import zoneinfo  # slow to import, and most workspaces are in UTC or pass here once

    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        near = nearest_names(value, sorted(zoneinfo.available_timezones()))
        hint = f"did you mean {near[0]}?" if near else "use one such as America/New_York"
        return f"{value[:60]!r} is not an IANA time zone; {hint}"
    return None


def _check_year_end(value: str) -> str | None:
    if re.fullmatch(r"[0-9]{2}-[0-9]{2}", value):
        try:
            date(2000, int(value[:2]), int(value[3:]))
        except ValueError:
            pass
        else:
            return None
    return f"{value[:20]!r} is not a day of the year, MM-DD"


def _check_books_folder(value: str) -> str | None:
    if value == ".":
        return None
    problem = _check_folder(value)
    if problem:
        return problem
    top = value.split("/")[0].lower()
    return f"{top}/ is used for something else" if top in USED_FOLDERS else None


def _check_folder(value: str) -> str | None:
    problem = relative_problem(value)
    if problem:
        return f"the path {problem}"
    parts = value.rstrip("/").split("/")
    if any(part in ("", ".") or part.lower() == ".git" for part in parts):
        return "not a plain path such as books/2025"
    return None


def _check_folders(value: Iterable[str]) -> str | None:
    return next((f"{path[:60]!r}: {problem}" for path in value if (problem := _check_folder(path))), None)


def _check_folders_anywhere(value: Iterable[str]) -> str | None:
    return _check_folders(path for path in value if not path.startswith(("/", "~")))


def _check_id(value: str) -> str | None:
    return None if _ID.fullmatch(value) else f"{value[:60]!r} has more than a–z, 0–9, - and _"


def _check_last4(value: str) -> str | None:
    return None if re.fullmatch(r"[0-9]{4}", value) else "must be four digits"


def _check_iban(value: str) -> str | None:
    text = value.replace(" ", "")
    return None if re.fullmatch(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{10,30}", text) else "not an IBAN"


def _check_encoding(value: str) -> str | None:
    try:
        is_text = bool(getattr(codecs.lookup(value), "_is_text_encoding", True))
    except (LookupError, ValueError):
        is_text = False
    return None if is_text else f"{value[:40]!r} is not a text encoding such as utf-8 or cp1252"


def _check_date_format(value: str) -> str | None:
    has_day = "%d" in value or "%e" in value or "%j" in value
    has_all = has_day and re.search(r"%[yY]", value) and re.search(r"%[mbBj]", value)
    if has_all or "%x" in value or "%F" in value:
        return None
    return f"{value[:40]!r} does not say where day, month and year are, as %d.%m.%Y does"


def _check_one_line(value: str) -> str | None:
    return "must be one line of text" if "\n" in value or not value.strip() else None


def check_variables(names: Sequence[str]) -> str | None:
    """Why an engine may not be handed these variables, or all that begin so; None where it may."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{1,99}\*?", name):
            return f"{name[:60]!r} is no name of an environment variable, nor the beginning of one with a * behind it"
        if re.match(_SET_BY_HOST, name):
            return f"{name} is set by the program itself, or would change what the engine is started with"
    return None


def _check_author(value: str) -> str | None:
    return "must not hold < or >" if "<" in value or ">" in value else _check_one_line(value)


def _check_clock_time(value: str) -> str | None:
    return None if re.fullmatch(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]", value) else "must be a time, HH:MM"


def _check_password(value: str) -> str | None:
    if len(value.strip()) < 6:  # so short a secret cannot be told from an ordinary word in a text
        return "must have at least 6 characters"
    return _check_one_line(value)


def _check_single_character(value: str) -> str | None:
    return None if len(value) == 1 and value not in '"\n' else "must be one character"


def _check_grouping_character(value: str) -> str | None:
    return None if len(value) <= 1 else "must be one character, or empty"


def _is_between(low: float, high: float) -> Check:
    def check(value: float | Decimal) -> str | None:
        return None if low <= value <= high else f"must be between {low:g} and {high:g}"

    return check


def _is_at_least(low: float, *, above: bool = False) -> Check:
    def check(value: float | Decimal) -> str | None:
        if value > low or (value == low and not above):
            return None
        return f"must be {'more than' if above else 'at least'} {low:g}"

    return check


def _check_public_key(value: str) -> str | None:
    kind, _, text = value.partition(":")
    if kind == "passkey" and re.fullmatch(r"[a-z0-9.-]{1,253}:[A-Za-z0-9_-]{40,1000}", text):
        return None
    try:
        good = kind == "ed25519" and len(base64.b64decode(text, validate=True)) == 32
    except ValueError:
        good = False
    return None if good else f"{value[:60]!r} is not a public key such as cleared queue reviewers shows"


def _check_duration(value: str) -> str | None:
    return None if re.fullmatch(r"[1-9][0-9]{0,4}[mhdw]", value) else f"{value[:20]!r} is no time such as 12h, 3d or 2w"


def _check_session_name(value: str) -> str | None:
    good = re.fullmatch(r"[A-Za-z0-9_-]{1,60}", value)
    return None if good else f"{value[:60]!r} has more than letters, digits, - and _"


def _check_lint_rules(value: Mapping[str, str]) -> str | None:
    wrong = [rule for rule, severity in value.items() if severity not in ("block", "warn", "off")]
    return f"{wrong[0]} must be block, warn or off, not {value[wrong[0]][:40]!r}" if wrong else None


CHECKS: dict[tuple[type, str], Check] = {
    (Business, "name"): _check_one_line,
    (Business, "currency"): _check_currency,
    (Business, "timezone"): _check_timezone,
    (Business, "tax_year_end"): _check_year_end,
    (Fiscal, "start_month"): _is_between(1, 12),
    (Paths, "books"): _check_books_folder,
    (BankAccount, "id"): _check_id,
    (BankAccount, "ledger_account"): _is_between(1, 999_999_999),
    (BankAccount, "currency"): _check_currency,
    (BankAccount, "format"): _check_one_line,
    (Match, "folder"): _check_folder,
    (Match, "last4"): _check_last4,
    (Match, "iban"): _check_iban,
    (Match, "header"): _check_one_line,
    (Match, "account"): _check_one_line,
    (CsvProfile, "columns"): check_columns,
    (CsvProfile, "date_format"): _check_date_format,
    (CsvProfile, "delimiter"): _check_single_character,
    (CsvProfile, "encoding"): _check_encoding,
    (CsvProfile, "thousands"): _check_grouping_character,
    (CsvProfile, "skip_lines"): _is_between(0, 1000),
    (CsvProfile, "search_lines"): _is_between(0, 1000),
    (CsvProfile, "rows_with"): _check_one_line,
    (CsvProfile, "currency"): _check_currency,
    (Import, "max_bytes"): _is_at_least(1),
    (Receipts, "max_bytes"): _is_at_least(1),
    (Import, "max_rows"): _is_at_least(1),
    (Import, "settle_seconds"): _is_between(0, 3600),
    (Thresholds, "auto_confirm"): _is_between(0, 1),
    (Thresholds, "high_confidence"): _is_between(0, 1),
    (Thresholds, "review"): _is_between(0, 1),
    (Thresholds, "anomaly_stddev"): _is_at_least(0, above=True),
    (Thresholds, "two_person"): _is_at_least(0, above=True),
    (Reviewer, "name"): _check_author,
    (Reviewer, "key"): _check_public_key,
    (Review, "remind_after"): _check_duration,
    (Limits, "max_amount"): _is_at_least(0, above=True),
    (Limits, "max_text_bytes"): _is_at_least(1),
    (Gate, "history_runs"): _is_between(1, 1_000),
    (Gate, "rules"): _check_lint_rules,
    (Sandbox, "timeout"): _is_between(0.001, 86_400),
    (Sandbox, "memory_mb"): _is_between(1, 1_048_576),
    (Sandbox, "max_calls"): _is_at_least(1),
    (Sandbox, "timeout_cap"): _is_between(0.001, 86_400),
    (Sandbox, "memory_mb_cap"): _is_between(16, 1_048_576),
    (Sandbox, "max_calls_cap"): _is_at_least(1),
    (Sandbox, "max_output_kb"): _is_at_least(1),
    (Git, "author_name"): _check_author,
    (Git, "author_email"): _check_author,
    (Lock, "wait_seconds"): _is_between(0, 86_400),
    (Agent, "watch_dir"): lambda value: _check_folder(value.removeprefix("./")),
    (SelfImprovement, "max_changes_per_night"): _is_at_least(0),
    (SelfImprovement, "max_changes_per_agent"): _is_at_least(0),
    (SelfImprovement, "cooldown_hours"): _is_at_least(0),
    (AutoRevert, "review_queue_spike"): _is_at_least(0),
    (AutoRevert, "invariant_violations"): _is_at_least(0),
    (AutoRevert, "error_rate_increase"): _is_at_least(0),
    (Triggers, "scan_seconds"): _is_between(1, 86_400),
    (Triggers, "retries"): _is_between(0, 100),
    (Triggers, "retry_seconds"): _is_between(0, 3_600),
    (Triggers, "max_depth"): _is_between(1, 1_000),
    (Triggers, "max_event_runs"): _is_at_least(1),
    (Webhooks, "rate"): _is_between(1, 1_000_000),
    (Llm, "model"): check_model_name,
    (Llm, "base_url"): check_base_url,
    (Llm, "api_key_env"): check_variable,
    (Llm, "daily_budget"): _is_between(0, 1_000_000),
    (Llm, "session_budget"): _is_between(0, 1_000_000),
    (Llm, "max_tokens"): _is_between(1, 1_000_000),
    (Llm, "timeout"): _is_between(1, 86_400),
    (Llm, "retries"): _is_between(0, 100),
    (Llm, "max_iterations"): _is_between(1, 10_000),
    (Llm, "auto_compact_threshold"): _is_between(0.05, 0.95),
    (Llm, "prune_protect"): _is_between(0, 10_000_000),
    (Llm, "max_images"): _is_between(0, 1_000),
    (Llm, "context_window"): _is_between(1_000, 100_000_000),
    (ModelPrice, "input"): _is_between(0, 1_000_000),
    (ModelPrice, "output"): _is_between(0, 1_000_000),
    (ModelPrice, "cached_input"): _is_between(0, 1_000_000),
    (Loop, "runtime_dir"): _check_one_line,
    (Loop, "sleep_seconds"): _is_between(0, 86_400),
    (Loop, "max_cycles"): _is_at_least(1),
    (Loop, "tmux_session"): _check_session_name,
    (Loop, "log_dir"): _check_one_line,
    (Loop, "max_failures"): _is_between(1, 1_000),
    (Loop, "keep_jobs"): _is_between(25, 1_000_000),
    (Loop, "continuity"): _check_folders,
    (Loop, "akela_report"): _check_folder,
    (Notifications, "address"): check_mail_address,
    (Notifications, "sender"): check_mail_address,
    (Notifications, "smtp_host"): check_host_name,
    (Notifications, "push_hosts"): check_push_hosts,
    **{(LoopAi, name): _check_one_line for name in ONE_LINE_TEXTS},
    **{(Tasks, n): _is_between(1, most) for n, most in (("work_seconds", 86_400), ("verify_seconds", 600))},
    (Tasks, "workers"): _is_between(1, 16),
    (Tasks, "read_only_folders"): _check_folders_anywhere,
    **{(LoopAi, name): _is_between(0, 86_400) for name in ("interval_seconds", "cooldown_seconds")},
    (LoopAi, "environment"): check_variables,
    (LoopAi, "cycle_timeout_seconds"): _is_between(1, 86_400),
    (LoopAi, "max_consecutive_errors"): _is_between(1, 1_000),
    (LoopAi, "max_no_progress"): _is_between(0, 1_000),
    (LoopAi, "limit_wait_seconds"): _is_between(1, 604_800),
    (LoopAi, "max_logs"): _is_between(1, 1_000_000),
    (LoopAi, "max_output_mb"): _is_between(1, 10_000),
    (LoopAi, "max_cycles"): _is_at_least(1),
    **{(LoopAi, name): _is_at_least(0) for name in ("cost_cap", "max_tokens", "max_minutes")},
    (Notifications, "smtp_port"): _is_between(1, 65_535),
    (Notifications, "smtp_user"): _check_one_line,
    (Notifications, "smtp_password"): _check_password,
    (Notifications, "daily_digest_time"): _check_clock_time,
}


def check_config(config: Config) -> Iterator[tuple[str, str]]:
    """Complaints about values that do not fit each other: (key, complaint)."""
    first: dict[str, int] = {}
    for number, account in enumerate(config.bank_accounts):
        entry_key = f"bank_accounts[{number}]"
        if account.id in first:
            yield f"{entry_key}.id", f"{account.id!r} is the id of bank_accounts[{first[account.id]}] already"
        first.setdefault(account.id, number)
        if account.opening:
            try:
                money.decode(
                    account.opening.balance, money.currency_exponent(account.currency or config.business.currency)
                )
            except ValueError as error:
                yield f"{entry_key}.opening.balance", str(error)
    keys = [reviewer.key for reviewer in config.reviewers]
    for number, key in enumerate(keys):
        if key in keys[:number]:
            yield f"reviewers[{number}].key", f"is the key of reviewers[{keys.index(key)}] already"
    people = {reviewer.name for reviewer in config.reviewers}
    for number, name in enumerate(config.bookkeepers):
        if name not in people:
            yield f"bookkeepers[{number}]", f"{name[:60]!r} is not the name of a reviewer"
    if people and people <= set(config.bookkeepers):
        yield "bookkeepers", "are all reviewers there are, and nobody could approve anything"
    if config.thresholds.two_person is not None and len(set(keys)) < 2:
        yield "thresholds.two_person", "needs two people who may decide; name them as reviewers"
    if config.limits.min_date > config.limits.max_date:
        yield "limits.min_date", f"is after limits.max_date, {config.limits.max_date}"
    yield from _check_notifications(config.notifications)
    for key in ("runtime_dir", "log_dir"):  # flags and variables are a person's own, and may name any folder
        folder = getattr(config.loop, key)
        if folder is not None and (problem := _check_folder(folder)):
            yield f"loop.{key}", problem
    for name, profile in config.import_.profiles.items():
        entry_key = f"import.profiles.{name}"
        if profile.thousands == profile.decimal:
            yield f"{entry_key}.thousands", "is the decimal mark too"


def _check_notifications(settings: Notifications) -> Iterator[tuple[str, str]]:
    needed = {"smtp": ("address", "smtp_host"), "email": ("address",), "exec": ("command",)}.get(
        settings.method or "none", ()
    )
    missing = [f"notifications.{key}" for key in needed if not getattr(settings, key)]
    if missing:
        yield "notifications.method", f"{settings.method} needs {' and '.join(missing)}"
    if settings.command and not settings.command[0].strip():
        yield "notifications.command", "names no program"
    if settings.smtp_user and settings.smtp_security == "none" and settings.smtp_host not in _LOCAL_HOSTS:
        yield "notifications.smtp_security", "none would send the password for all to read; use starttls or tls"
