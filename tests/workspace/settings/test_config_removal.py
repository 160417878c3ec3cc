"""Taking a key out leaves every other character of the file, whether or not a setting may stand there."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleared.base.errors import ClearedError, UsageError
from cleared.workspace import template
from cleared.workspace.settings.editing import remove_value, set_value
from cleared.workspace.settings.loading import ConfigError, load_config, read_valid_part

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
thresholds: {auto_confirm: 0.95, review: 0.7}
agent:
  schedule: |
    mail

    more
git:
  author_name:   # whoever
    "me"
llm:
  prices:
    gpt-4.1: {input: 2, output: 8}
loop:
  rotation:
    - books_check
    # the last
    - git_status_summary
"""


def changed_lines(before: str, after: str) -> list[str]:
    return [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("business.name", ["-   name: Acme   # who we are"]),
        ("bank_accounts.checking.format", ["-     csv_format: chase_checking"]),
        ("bank_accounts[0].csv_format", ["-     csv_format: chase_checking"]),
        ("bank_accounts.card", ["-   - {id: card, type: credit_card,}"]),
        ("bank_accounts.1.type", ["-   - {id: card, type: credit_card,}", "+   - {id: card,}"]),
        (
            "thresholds.auto_confirm",
            ["- thresholds: {auto_confirm: 0.95, review: 0.7}", "+ thresholds: {review: 0.7}"],
        ),
        (
            "thresholds.review",
            ["- thresholds: {auto_confirm: 0.95, review: 0.7}", "+ thresholds: {auto_confirm: 0.95}"],
        ),
        ("agent.schedule", ["-   schedule: |", "-     mail", "- ", "-     more"]),
        ("git.author_name", ["-   author_name:   # whoever", '-     "me"']),
        ("git", ["- git:", "-   author_name:   # whoever", '-     "me"']),
        ("llm.prices.gpt-4.1", ["-     gpt-4.1: {input: 2, output: 8}"]),
        ("loop.rotation.1", ["-     - git_status_summary"]),
    ],
)
def test_only_what_is_named_goes(key: str, expected: list[str]) -> None:
    for text in (TEXT, TEXT.replace("\n", "\r\n")):
        after = remove_value(text, key)
        assert [line.rstrip() for line in changed_lines(text, after)] == [line.rstrip() for line in expected]
        assert ("\r\n" in text) == ("\r\n" in after) and after.count("\n") == text.count("\n") - sum(
            {"-": 1, "+": -1}[line[0]] for line in expected
        )


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("bank_accounts.checking.id", "missing"),
        ("bank_accounts.card.id", "missing"),
        ("llm.prices.gpt-4.1.input", "missing"),
        ("nothing", "does not stand"),
        ("", "does not stand"),
        ("business.name.x", "does not stand"),
        ("bank_accounts.7", "does not stand"),
    ],
)
def test_what_must_stand_there_and_what_does_not_is_not_taken_out(key: str, expected: str) -> None:
    with pytest.raises((UsageError, ConfigError), match=expected):
        remove_value(TEXT, key)


@pytest.mark.parametrize(
    ("text", "key", "after"),
    [
        ("a: 1\nlock:\n  wait_seconds: 5\n", "a", "lock:\n  wait_seconds: 5\n"),
        ("lock: {wait_seconds: 5, wait_seconds: 6}\n", "lock.wait_seconds", "lock: {wait_seconds: 5}\n"),
        ("gate:\n  rules:\n    x: [1]\n", "gate.rules.x", "gate:\n"),
        ("bank_accounts:\n  - [1]\n  - id: a\n", "bank_accounts[0]", "bank_accounts:\n  - id: a\n"),
        ("bank_accounts:\n  - foo: 1\n    id: a\n", "bank_accounts[0].foo", "bank_accounts:\n  - id: a\n"),
        ('"a b": {"c": [1, {d: e}]}', "a b", ""),
        ("? foo\n: bar\n", "foo", None),
        ("\ufefffoo: 1\nlock:\n  wait_seconds: 5\n", "foo", "\ufefflock:\n  wait_seconds: 5\n"),
    ],
)
def test_what_no_setting_has_goes_as_well(text: str, key: str, after: str | None) -> None:
    if after is None:
        with pytest.raises(ClearedError):
            remove_value(text, key)
    else:
        assert remove_value(text, key) == after
        load_config(after)


SETTINGS = [("business.name", "x"), ("lock.wait_seconds", "5"), ("git.auto_commit", "false"), ("mcp.allow_run", "true")]


@given(added=st.permutations(SETTINGS), base=st.sampled_from(["", TEXT, template.starter_config()]))
def test_what_was_added_is_taken_out_without_a_trace(added: list[tuple[str, str]], base: str) -> None:
    before = load_config(base)
    text = base
    for key, value in added:
        text = set_value(text, key, value)
    for key, _ in added:
        text = remove_value(text, key)
    rest = [line for line in changed_lines(base, text) if line.startswith("-")]
    assert all(any(key.rpartition(".")[2] in line for key, _ in SETTINGS) for line in rest), rest
    assert load_config(text).thresholds == before.thresholds


LINES = [
    "foo: 1",
    "'we ird': {a: 1}",
    "loop: 5",
    "loop:\n  log_dir: ../x\n  a: [1]",
    "lock: {wait_seconds: soon, b: 1}",
    "lock:\n  wait_seconds: 5",
    "business:\n  - a",
    "mcp:\n  allow_run:\n    - true",
    "bank_accounts:\n  - 5\n  - {id: a}\n  - id: a\n  - foo: 1",
    "llm: {api_key: x}",
]


@given(lines=st.lists(st.sampled_from(LINES), min_size=1, max_size=6))
def test_as_long_as_anything_is_wrong_a_command_is_named_that_mends_some_of_it(lines: list[str]) -> None:
    from cleared.workspace.settings.config_file import describe_fault

    text = "# first\n" + "\n".join(lines) + "\n# last\n"
    for _ in range(40):
        fault = describe_fault(text, read_valid_part(text))
        if fault is None:
            break
        assert (fault.remedy is not None and "config unset" in fault.remedy) or "config set" in str(fault.remedy), fault
        command = fault.remedy.removeprefix("Mend it: ").split("; ")[0].split(". And")[0].rstrip(".")
        verb, key = command.split(" ")[2], command.split(" ", 3)[3].removesuffix(" VALUE").strip("'")
        values = {"wait_seconds": "5", "log_dir": "logs", "name": "x", "allow_run": "true", "id": f"b{_}"}
        value = values.get(key.rpartition(".")[2])
        before = text
        text = set_value(text, key, value) if verb == "set" and value else remove_value(text, key)
        assert text != before
    else:
        raise AssertionError(f"not mended: {text}")
    assert text.startswith("# first\n") and text.endswith("# last\n")
    load_config(text)
