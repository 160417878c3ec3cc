"""Every setting is read by the code, or marked *reserved* where it is declared; never both, never neither."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import cleared
from cleared.workspace.settings import model
from cleared.workspace.settings.loading import load_config
from cleared.workspace.settings.protected_settings import (
    compare_settings,
    is_protected,
    protected_settings_of,
    with_protected_settings,
)
from cleared.workspace.settings.reference import list_settings
from cleared.workspace.settings.setting_keys import list_reserved_in_use, reserved_settings, setting_fields

PACKAGE = Path(cleared.__file__).parent
STARTERS = "\n".join(path.read_text(encoding="utf-8") for path in (PACKAGE.parent / "agents").glob("*.py"))
OWNERS = {
    "bank_accounts": {"account", "BankAccount"},
    "loop": {"LoopSettings", "settings", "reads_setting"},
    "sandbox": {"Sandbox"},
}
"""Other names by which modules reach a section's settings."""


def walk(section: type, path: tuple[str, ...] = (), owner: str = "Config") -> Iterator[tuple[str, str, set[str]]]:
    """``(dotted key, attribute, names of its section)`` of every setting."""
    for key, field in setting_fields(section).items():
        inner = field.section or field.entries
        if inner:
            yield from walk(inner, (*path, key), field.attribute)
        else:
            names = {owner, section.__name__, *OWNERS.get(path[0] if path else "", ())}
            yield ".".join((*path, key)), field.attribute, names


def names_in(path: Path) -> set[str]:
    """Attributes, keyword arguments, short texts, and classes of the configuration that a module names."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.keyword) and node.arg:
            names.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 60:
            names.add(node.value)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names}
    return names


def is_read(key: str, attribute: str, owners: set[str], modules: list[set[str]]) -> bool:
    """Whether a module that names the section names the setting too, or a starter asks for it by its key."""
    spellings = {attribute, re.sub(r".*(_cap)$", r"\1", attribute)}
    return f'"{key}"' in STARTERS or any(names & spellings and names & owners for names in modules)


def test_a_setting_is_read_or_reserved() -> None:
    skipped = {PACKAGE / "config" / "model.py", PACKAGE / "config" / "value_checks.py"}
    skipped |= set((PACKAGE / "config").glob("*_section.py"))
    modules = [names_in(path) for path in PACKAGE.rglob("*.py") if path not in skipped]
    unread = {key for key, *rest in walk(model.Config) if not is_read(key, *rest, modules)}
    assert unread - reserved_settings() == set(), (
        "no code reads these: mark them reserved(default=…) in config/model.py"
    )


def test_a_reserved_setting_is_read_by_nothing() -> None:
    chains = re.compile(
        "|".join(rf"\.{re.escape(key)}\b|config_get\([\"']{re.escape(key)}[\"']" for key in reserved_settings())
    )
    texts = [*(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")), STARTERS]
    assert [match for text in texts for match in chains.findall(text)] == []


def test_the_check_sees_both_mistakes() -> None:
    modules = [{"limits", "max_amount"}, {"other", "max_day"}]
    assert is_read("limits.max_amount", "max_amount", {"limits", "Limits"}, modules)
    assert not is_read("limits.max_day", "max_day", {"limits", "Limits"}, modules)


def test_reserved_settings_are_marked_in_the_table() -> None:
    table = {info.key: info for info in list_settings()}
    assert {key for key, info in table.items() if info.reserved} == reserved_settings()
    assert {"fiscal.start_month", "llm.model", "self_improvement.auto_revert_on.error_rate_increase"} <= set(table)


def test_reserved_settings_are_protected() -> None:
    """No part of the program reads them, but an approved script may, so only an approved value may steer it."""
    assert [key for key in reserved_settings() if not is_protected(key)] == []


def test_they_are_accepted_and_told_of_once() -> None:
    assert list_reserved_in_use(model.Config()) == []
    text = "business: {tax_year_end: 06-30}\nagent: {watch_dir: in/}\nthresholds: {review: 0.5}\n"
    assert list_reserved_in_use(load_config(text)) == [
        "agent.watch_dir",
        "business.tax_year_end",
        "thresholds.review",
    ]


def test_the_approved_value_of_a_reserved_setting_is_the_one_in_force() -> None:
    approved = {"thresholds.anomaly_stddev": 9.0, "thresholds.auto_confirm": 0.5}
    config = load_config("thresholds: {anomaly_stddev: 3.0}\n")
    with_approved = with_protected_settings(config, approved)
    assert (with_approved.thresholds.auto_confirm, with_approved.thresholds.anomaly_stddev) == (0.5, 9.0)
    assert protected_settings_of(with_approved) == approved
    assert compare_settings(approved, {"thresholds.auto_confirm": 0.5}) == [("thresholds.anomaly_stddev", 9.0, 2.0)]


def test_an_approval_that_names_what_is_not_protected_is_passed_over() -> None:
    config = load_config("lock: {wait_seconds: 4}\n")
    assert with_protected_settings(config, {"lock.wait_seconds": 7.0}).lock.wait_seconds == 4
