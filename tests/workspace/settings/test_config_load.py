"""``config.yaml`` is read whole: what is wrong is named by file, line and key, all of it at once."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from cleared.base.errors import ExitCode, PolicyError, PrimitiveError, WorkspaceError
from cleared.workspace import template
from cleared.workspace.settings.config_file import load_config_file
from cleared.workspace.settings.loading import ConfigError, load_config
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.protected_settings import (
    is_protected,
    protected_settings_of,
    with_protected_settings,
)
from cleared.workspace.settings.reference import list_settings
from cleared.workspace.settings.setting_keys import keys_declared, list_setting_values
from cleared.workspace.settings.setting_lookup import get_setting

GOOD = """\
business:
  name: Acme LLC
  timezone: America/New_York
bank_accounts:
  - id: checking
    csv_format: chase_checking
    opening: { date: 2024-12-31, balance: 0.1000000000000000055511151231257827 }
    match: { last4: 0123 }
import:
  profiles:
    sparkasse:
      columns: { date: Buchungstag, description: Zweck, debit: Soll, credit: Haben }
      delimiter: ";"
      decimal: ","
      thousands: "."
limits:
  max_amount: 99999999999999999999.99
"""


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(text)
    assert caught.value.exit_code == ExitCode.UNUSABLE
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
    assert caught.value.place == caught.value.problems[0].place
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "business:\nimport:\n  # all comments\n", "~"])
def test_nothing_said_means_the_defaults(text: str) -> None:
    config = load_config(text)
    assert config.business == Config().business
    assert config.thresholds.auto_confirm == 0.95
    assert get_setting(config, "thresholds.auto_confirm") == 0.95


def test_values_arrive_with_their_types() -> None:
    config = load_config(GOOD.replace("0.1000000000000000055511151231257827", "1250.10"))
    (account,) = config.bank_accounts
    assert account.opening is not None
    assert account.opening.date == date(2024, 12, 31)
    assert account.opening.balance == Decimal("1250.10")
    assert account.format == "chase_checking"
    assert account.ledger_account == 1010
    assert account.match.last4 == "0123"
    assert config.limits.max_amount == Decimal("99999999999999999999.99")
    assert config.import_.profiles["sparkasse"].name == "sparkasse"


def test_amounts_never_pass_through_a_float() -> None:
    (problem,) = problems(GOOD)
    assert "bank_accounts[0].opening.balance" in problem
    assert "0.1000000000000000055511151231257827 is finer" in problem


def test_every_problem_is_listed_with_its_line_and_key() -> None:
    found = problems(
        "business:\n  currncy: USD\n  timezone: America/New_Yrok\nthresholds:\n  auto_confirm: 1.5\n  review: high\n"
    )
    assert found == [
        "config.yaml:2 (business.currncy): unknown key; did you mean currency?",
        "config.yaml:3 (business.timezone): 'America/New_Yrok' is not an IANA time zone; "
        "did you mean America/New_York?",
        "config.yaml:5 (thresholds.auto_confirm): must be between 0 and 1",
        "config.yaml:6 (thresholds.review): must be a number, not 'high'",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("busines:\n  name: x\n", "config.yaml:1 (busines): unknown key; did you mean business?"),
        ("- a\n", "config.yaml:1: must be a section"),
        ("business: 5\n", "(business): must be a section"),
        ("business:\n  name: a\n  name: b\n", ":3 (business.name): given twice; first on line 2"),
        ("business:\n  name: [a]\n", "must be a text, not a list"),
        ("business:\n  currency: usd\n", "'usd' is not an ISO 4217"),
        ("business:\n  currency:\n", "has no value"),
        ("business:\n  entity_type: llc\n", "is not one of llc_single_member"),
        ("business:\n  timezone: America\n", "not an IANA time zone"),
        ("business:\n  timezone: ../../etc/passwd\n", "not an IANA time zone"),
        ("business:\n  tax_year_end: 13-01\n", "not a day of the year"),
        ("git:\n  auto_commit: maybe\n", "must be true or false"),
        ("git:\n  auto_commit: 'true'\n", "without quotes"),
        ("git:\n  author_email: '<x>'\n", "must not hold <"),
        ("thresholds:\n  auto_confirm: .nan\n", "must be a number"),
        ("thresholds:\n  auto_confirm: .inf\n", "must be a number"),
        ("thresholds:\n  auto_confirm: 1e400\n", "must be a number"),
        ("bank_accounts:\n  - name: x\n", ":2 (bank_accounts[0].id): missing"),
        ("bank_accounts:\n  - id: a\n  - id: a\n", ":3 (bank_accounts[1].id): 'a' is the id of"),
        ("bank_accounts:\n  - id: ../a\n", "bank_accounts[0].id"),
        ("bank_accounts:\n  - id: a\n    ledger_account: '1010'\n", "without quotes"),
        ("bank_accounts:\n  - id: a\n    ledger_account: 10.5\n", "must be a whole number"),
        ("bank_accounts:\n  - id: a\n    format: x\n    csv_format: y\n", "given twice"),
        ("bank_accounts:\n  - id: a\n    opening: {date: 2025-02-30, balance: 1}\n", "must be a date"),
        ("bank_accounts:\n  - id: a\n    opening: {date: 2025-02-03, balance: 1e3}\n", "must be an amount"),
        ("bank_accounts:\n  - id: a\n    opening: {date: 2025-02-03}\n", "opening.balance): missing"),
        ("bank_accounts:\n  - id: a\n    match: {folder: /etc}\n", "is absolute"),
        ("bank_accounts: {}\n", "must be a list"),
        ("paths:\n  books: /srv/books\n", "is absolute"),
        ("paths:\n  books: ../books\n", "holds .."),
        ("paths:\n  books: import\n", "used for something else"),
        ("paths:\n  books: books/.git/x\n", "not a plain path"),
        ("limits:\n  min_date: 2030-01-01\n  max_date: 2020-01-01\n", ":2 (limits.min_date): is after"),
        ("limits:\n  max_amount: -1\n", "must be more than 0"),
        ("import:\n  profiles:\n    p: {columns: {date: D}}\n", "no column for description"),
        ("import:\n  profiles:\n    p: {columns: {date: D, description: T}}\n", "no column for amount"),
        ("import:\n  profiles:\n    p: {columns: {date: D, description: T, debit: S}}\n", "both of debit and credit"),
        ("import:\n  profiles:\n    p: {columns: {dat: D, description: T, amount: A}}\n", "did you mean date?"),
        ("import:\n  profiles:\n    p: {name: q, columns: {date: D}}\n", "unknown key"),
        ("import:\n  profiles:\n    P/x: {columns: {date: D, description: T, amount: A}}\n", "profile's name"),
        ("import:\n  max_bytes: 0\n", "must be at least 1"),
        ("lock:\n  wait_seconds: -1\n", "must be between"),
        ("agent:\n  watch_dir: ../x\n", "holds .."),
        ("data: {}\n", "unknown key"),
        ("business:\n  name: 'a\0b'\n", "not valid YAML"),
        ('business:\n  name: "a\\0b"\n', "control character"),
        ("business:\n  name: \ud800\n", ":2: half a character"),
        ("a: [1\nb: 2\n", "not valid YAML"),
        ("a: b: c\n", "config.yaml:1:5: not valid YAML"),
        ("\tbusiness: x\n", "not valid YAML"),
        ("--- {}\n--- {}\n", ":2: a second document"),
        ("business: &b {name: x}\n", ":1: anchors"),
        ("business: *b\n", "config.yaml:1: aliases"),
        ("business:\n  <<: {name: x}\n", ":2: merge keys"),
        ("business:\n  name: !!python/object:os.system x\n", ":2: tags"),
        ("business:\n  name: !!str x\n", ":2: tags"),
        ("? [a]\n: b\n", "cannot be a key"),
        ("a: " + "[" * 900_000, "nested more than"),
        ("{a: " * 200_000, "nested more than"),
        ("# " + "x" * 1_000_000, "longer than"),
    ],
)
def test_what_is_refused(text: str, expected: str) -> None:
    assert any(expected in problem for problem in problems(text)), problems(text)


def test_the_reader_in_pure_python_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    import yaml

    text = template.starter_config()
    with_c = load_config(text)
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert load_config(text) == with_c


def test_the_starter_is_valid_and_says_the_defaults() -> None:
    config = load_config(template.starter_config())
    assert config.thresholds == Config().thresholds
    assert config.limits == Config().limits
    assert config.bank_accounts[0].format == "chase_checking"


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"business:\n  name: \xff\n", "config.yaml:2: byte 18 is not UTF-8"), (b"#" * 1_000_001, "at most 1,000,000")],
)
def test_a_file_that_cannot_be_text(tmp_path: Path, data: bytes, expected: str) -> None:
    (tmp_path / "config.yaml").write_bytes(data)
    with pytest.raises(WorkspaceError, match=expected):
        load_config_file(tmp_path / "config.yaml")


def test_a_byte_order_mark_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"\xef\xbb\xbfbusiness:\n  name: x\n")
    assert load_config_file(tmp_path / "config.yaml").business.name == "x"


SECRET = """\
notifications: { smtp_password: hunter2 }
bank_accounts:
  - { id: checking, opening: { date: 2024-12-31, balance: 12.50 } }
"""


def test_scripts_get_plain_values() -> None:
    config = load_config(SECRET)
    assert get_setting(config, "limits.max_amount") == Decimal("1000000000000")
    assert get_setting(config, "limits.min_date") == "1970-01-01"
    assert get_setting(config, "bank_accounts.checking.opening") == {"date": "2024-12-31", "balance": Decimal("12.50")}
    assert get_setting(config, "bank_accounts.0.id") == "checking"
    assert get_setting(config, "import.pending", "none") == "none"
    assert get_setting(config, "thresholds")["review"] == 0.7
    get_setting(config, "thresholds")["review"] = 0  # a copy: the script cannot reach the host's
    assert get_setting(config, "thresholds.review") == 0.7


@pytest.mark.parametrize("key", ["llm.api_key", "llm.API_KEY", "a.secret.b", "x.smtp_password", "Token"])
def test_secrets_are_refused_whatever_the_default(key: str) -> None:
    with pytest.raises(PolicyError, match="secret"):
        get_setting(load_config(SECRET), key)
    with pytest.raises(PolicyError):
        get_setting(load_config(SECRET), key, None)
    assert "hunter2" not in str(get_setting(load_config(SECRET), "notifications"))


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("thresholds.auto_confrim", "did you mean thresholds.auto_confirm"),
        ("auto_confirm", "did you mean thresholds.auto_confirm"),
        ("business.name.first", "no key"),
        ("bank_accounts.chekcing.id", "did you mean bank_accounts.checking"),
        ("bank_accounts.9.id", "no key"),
        ("", "no key"),
        ("llm.model", "has no value"),
    ],
)
def test_a_missing_key_is_refused_unless_there_is_a_default(key: str, expected: str) -> None:
    config = load_config(SECRET)
    with pytest.raises(PrimitiveError, match=expected):
        get_setting(config, key)
    assert get_setting(config, key, "d") == "d"
    assert get_setting(config, key, None) is None


def test_the_table_of_keys_comes_from_the_model() -> None:
    table = {info.key: info for info in list_settings()}
    assert table["business.timezone"].default == "UTC"
    assert table["business.timezone"].doc.startswith("IANA zone")
    assert table["bank_accounts[].id"].default == "required"
    assert table["import.profiles.<name>.decimal"].type == "one of ., ,"
    assert table["limits.max_amount"].default == "1000000000000"
    assert table["git.auto_commit"].default == "true"
    assert "data" not in table
    assert "import.profiles.<name>.name" not in table


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("api_key: sk-planted-0123456789", "take the line out, and put the key into the environment"),
        ("provider: acme", "not one of anthropic, openai, openrouter"),
        ("base_url: ftp://models.example", "not an address such as http://127.0.0.1:11434/v1"),
        ("base_url: http://me:sesame@models.example/v1", "must not hold a user or password"),
        ("base_url: https://models.example/v1?key=x", "must not have a . or # part"),
        ("api_key_env: sk-planted-0123456789", "the name of an environment variable"),
        ("daily_budget: -1", "between 0 and"),
        ("auto_compact_threshold: 1.5", "between 0.05 and 0.95"),
        ("prices: {gpt-x: {input: 1}}", "missing"),
        ("prices: {gpt-x: {input: -1, output: 1}}", "between 0 and"),
        ('prices: {"a b": {input: 1, output: 1}}', "a model's name"),
    ],
)
def test_settings_of_models_are_checked(line: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected) as refusal:
        load_config(f"llm:\n  {line}\n")
    assert "planted" not in str(refusal.value) and "sesame" not in str(refusal.value)


def test_settings_of_models_that_look_like_secrets_are_none() -> None:
    config = load_config("llm: {api_key_env: MY_KEY, prices: {openai/gpt-4.1: {input: 2, output: 8.5}}}")
    assert get_setting(config, "llm.max_tokens") == 16_384 and get_setting(config, "llm.api_key_env") == "MY_KEY"
    assert config.llm.prices["openai/gpt-4.1"].output == Decimal("8.5")


def test_what_decides_where_books_go_and_what_it_may_cost_is_protected() -> None:
    pushed = load_config(
        "llm: {provider: openai, base_url: 'https://evil.example', shell: true, prices: {a.b: {input: 1, output: 2}}}"
    )
    assert protected_settings_of(pushed) == {
        "llm.provider": "openai",
        "llm.base_url": "https://evil.example",
        "llm.shell": True,
        "llm.prices.a.b.input": "1",
        "llm.prices.a.b.output": "2",
    }
    in_force = with_protected_settings(pushed, {"llm.provider": "anthropic"})
    assert (in_force.llm.provider, in_force.llm.base_url, in_force.llm.shell) == ("anthropic", None, False)
    assert in_force.llm.prices == {}
    priced = with_protected_settings(pushed, protected_settings_of(pushed))
    assert priced.llm.prices == pushed.llm.prices


@pytest.mark.parametrize(
    "text", ["", "thresholds: {auto_confirm: 0.950}", "loop: {}", "gate: {rules: {dead-branch: warn}}"]
)
def test_a_section_that_is_left_out_is_as_shipped_so_that_nothing_of_it_is_missed(text: str) -> None:
    """Also where a value is the shipped one, written in another way."""
    config = load_config(text)
    every = {key: value for key, value, shipped in list_setting_values(config) if value != shipped}
    assert protected_settings_of(config) == {key: value for key, value in every.items() if is_protected(key)}
    declared = keys_declared("harmless", "secret")
    assert all(is_protected(key) is (key not in declared) for key, _, _ in list_setting_values(config))
