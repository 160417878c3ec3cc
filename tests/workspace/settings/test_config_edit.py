"""Changing a value keeps every other character of the file."""

import difflib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cleared.base.errors import ClearedError, UsageError
from cleared.workspace import template
from cleared.workspace.settings.editing import set_value
from cleared.workspace.settings.loading import ConfigError, load_config
from cleared.workspace.settings.setting_lookup import get_setting

TEXT = """\
# Ours.
business:
  name: Acme   # who we are
  currency: USD

  # the end of the business
bank_accounts:
  - id: checking   # first
    csv_format: chase_checking
  - {id: card, type: credit_card,}
llm:
# nothing yet
thresholds: {auto_confirm: 0.95, review: 0.7}
agent:
  schedule: |
    mail
git:
  author_name:   # whoever
    "me"
"""


def changed_lines(before: str, after: str) -> list[str]:
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in lines if line[0] in "+-"]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("business.name", "Beta & Co: 1", ["-   name: Acme   # who we are", '+   name: "Beta & Co: 1"   # who we are']),
        ("business.timezone", "Europe/Berlin", ["+   timezone: Europe/Berlin"]),
        ("bank_accounts.checking.format", "x", ["-     csv_format: chase_checking", "+     csv_format: x"]),
        ("bank_accounts.checking.match.last4", "0123", ["+     match:", '+       last4: "0123"']),
        (
            "bank_accounts.card.ledger_account",
            "2010",
            ["-   - {id: card, type: credit_card,}", "+   - {id: card, type: credit_card, ledger_account: 2010,}"],
        ),
        ("llm.provider", "openai", ["+   provider: openai"]),
        (
            "thresholds.high_confidence",
            "0.8",
            [
                "- thresholds: {auto_confirm: 0.95, review: 0.7}",
                "+ thresholds: {auto_confirm: 0.95, review: 0.7, high_confidence: 0.8}",
            ],
        ),
        ("agent.schedule", "push", ["-   schedule: |", "+   schedule: push", "-     mail"]),
        ("agent.watch_dir", "in", ["+   watch_dir: in"]),
        ("git.author_name", "yes", ['-     "me"', '+     "yes"']),
        ("git.auto_commit", "false", ["+   auto_commit: false"]),
        ("lock.wait_seconds", "5", ["+ ", "+ lock:", "+   wait_seconds: 5"]),
        ("import.plugins", "a, b c", ["+ ", "+ import:", "+   plugins: [a, b c]"]),
        (
            "self_improvement.auto_revert_on.review_queue_spike",
            "3",
            ["+ ", "+ self_improvement:", "+   auto_revert_on:", "+     review_queue_spike: 3"],
        ),
    ],
)
def test_only_the_lines_of_the_key_change(key: str, value: str, expected: list[str]) -> None:
    after = set_value(TEXT, key, value)
    assert changed_lines(TEXT, after) == expected
    assert str(get_setting(load_config(after), key)) in (value, f"{value}.0", value.title(), "['a', 'b c']")


PRICES = "llm:\n  prices:\n    gpt-4.1: {input: 2, output: 8}\n    qwen3:8b: {input: 0, output: 0}\n"


@pytest.mark.parametrize(
    ("text", "key", "value", "expected"),
    [
        ("", "gpt-4.1", "input: 2, output: 8", ["+ llm:", "+   prices:", "+     gpt-4.1: { input: 2, output: 8 }"]),
        (PRICES, "a/b-1.5", "{output: 8.50, input: 2}", ["+     a/b-1.5: { output: 8.50, input: 2 }"]),
        (
            PRICES,
            "gpt-4.1.output",
            "9",
            ["-     gpt-4.1: {input: 2, output: 8}", "+     gpt-4.1: {input: 2, output: 9}"],
        ),
        (
            PRICES,
            "qwen3:8b",
            '{input: "1", output: 2, cached_input: 0.1}',
            ["-     qwen3:8b: {input: 0, output: 0}", '+     qwen3:8b: { input: "1", output: 2, cached_input: 0.1 }'],
        ),
    ],
)
def test_an_entry_with_a_name_is_set_whole_or_in_part(text: str, key: str, value: str, expected: list[str]) -> None:
    """Names of models have dots in them."""
    after = set_value(text, f"llm.prices.{key}", value)
    assert changed_lines(text, after) == expected
    config = load_config(after)
    name = key.removesuffix(".output")
    assert get_setting(config, f"llm.prices.{name}")["output"] == config.llm.prices[name].output
    assert get_setting(config, f"llm.prices.{name}.output") == config.llm.prices[name].output


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("new.output", "9", r"no such entry in prices.*llm\.prices\.new '\{ input: …, output: … \}'"),
        ("new", "output: 9", r"llm\.prices\.new\.input: missing"),
        ("new", "9", "unknown key"),
        ("new", "", "missing"),
        ("new", "{input: 1, output: [2]}", "must be an amount"),
        ("new", "{input: 1, output: 2", "not an entry such as"),
        ("new", "input: 1, output: 2 }\nbusiness: { name: x", "not an entry such as"),
        ("a b", "{input: 1, output: 2}", "a model's name"),
        ("x: {input: 1, output: 1}\n  model", "{input: 1, output: 2}", r"llm\.model"),
        ("x: {input: 1, output: 1}\n  daily_budget", "{input: 1, output: 2}", r"llm\.daily_budget"),
    ],
)
def test_entries_that_cannot_be_right_are_refused(key: str, value: str, expected: str) -> None:
    with pytest.raises((UsageError, ConfigError), match=f"(?s){expected}"):
        set_value(PRICES, f"llm.prices.{key}", value)


def test_line_ends_of_the_file_are_kept() -> None:
    after = set_value(TEXT.replace("\n", "\r\n"), "git.auto_commit", "false")
    after = set_value(after, "lock.wait_seconds", "5")
    after = set_value(after, "agent.schedule", "push")
    assert after.count("\n") == after.count("\r\n")


def test_an_empty_file_and_one_without_a_last_line_end() -> None:
    assert set_value("", "business.name", "A") == "business:\n  name: A\n"
    assert set_value("business:\n  name: A", "business.currency", "EUR") == "business:\n  name: A\n  currency: EUR\n"
    assert set_value("{}\n", "business.name", "A") == "{ business: {name: A} }\n"
    assert set_value("business: {}\n", "business.name", "A") == "business: { name: A }\n"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("business.nam", "x", "did you mean name"),
        ("business", "x", "is a section"),
        ("business.name.x", "x", "is a value"),
        ("bank_accounts.savings.name", "x", "no such entry"),
        ("thresholds.review", "often", "must be a number"),
        ("business.currency", "usd", "ISO 4217"),
        ("business.name", "a\0", "control"),
        ("bank_accounts.card.opening.balance", "5", "opening.date.*missing"),
        ("thresholds.review", "0.5, high_confidence: 0", "must be a number"),
        ("git.auto_commit", "true\n  author_email: x", "must be true or false"),
    ],
)
def test_what_cannot_be_set_is_refused(key: str, value: str, expected: str) -> None:
    with pytest.raises((UsageError, ConfigError), match=expected):
        set_value(TEXT, key, value)


@pytest.mark.parametrize("base", [TEXT, template.starter_config(), "", "{}", "business: {name: x}\n"])
@given(value=st.text(min_size=1, max_size=40))
def test_any_text_comes_back_as_it_was_and_goes_back_without_a_trace(base: str, value: str) -> None:
    key = "business.name"
    try:
        after = set_value(base, key, value)
    except ClearedError:
        assume(False)
        return
    assert load_config(after).business.name == value
    first = load_config(base).business.name
    back = set_value(after, key, first)
    assert load_config(back).data == load_config(base).data
    if base in (TEXT, template.starter_config()):
        assert back == base


@given(
    st.lists(
        st.sampled_from(
            [
                ("business.timezone", "Asia/Tokyo"),
                ("thresholds.review", "0.25"),
                ("import.keep", "local"),
                ("import.settle_seconds", "7"),
                ("bank_accounts.checking.name", "Konto №1"),
                ("limits.max_amount", "10.01"),
                ("sandbox.memory_mb", "99"),
                ("git.auto_commit", "false"),
                ("llm.model", "m"),
                ("self_improvement.auto_revert_on.error_rate_increase", "0.25"),
            ]
        ),
        unique=True,
    )
)
def test_any_sequence_of_changes_keeps_every_comment(changes: list[tuple[str, str]]) -> None:
    text = template.starter_config()
    comments = [line for line in text.splitlines() if "#" in line]
    for key, value in changes:
        text = set_value(text, key, value)
    assert [line for line in text.splitlines() if "#" in line] == comments
    config = load_config(text)
    for key, value in changes:
        assert str(get_setting(config, key)).lower() == value.lower() or float(get_setting(config, key)) == float(value)
