"""Whoever can push writes ``config.yaml``: no setting in it that could do harm is in force before its approval.

Row D20.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import IDENTITY, Workspace, chase, refused, take_ok, take_shown

from cleared.trust import policy_in_force
from cleared.workspace.settings import model
from cleared.workspace.settings.editing import set_value
from cleared.workspace.settings.loading import load_config
from cleared.workspace.settings.protected_settings import compare_settings, is_protected, protected_settings_of
from cleared.workspace.settings.setting_keys import setting_fields

RECORD = "agents/approvals/config.json"
FEBRUARY = chase(("02/04/2025", "GITHUB *PRO", "-4.00", "2442.40"), ("02/05/2025", "RENT", "-900.00", "1542.40"))
PENDING = "config.yaml: not approved yet, and not in force: "


def push(ws: Workspace, text: str) -> None:
    """A commit of somebody else's, as a pull brings it."""
    assert text != ws.read("config.yaml")
    ws.put("config.yaml", text)
    ws.commit("config.yaml", message="config")


def push_values(ws: Workspace, *pairs: tuple[str, str]) -> None:
    text = ws.read("config.yaml")
    for key, value in pairs:
        text = set_value(text, key, value)
    push(ws, text)


@pytest.fixture
def unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall switched off: what ``config.yaml`` says is in force."""
    monkeypatch.setattr(policy_in_force, "_read_approved", lambda approvals, wanted: (wanted, None))


# -- one pushed word --------------------------------------------------------------------------------------------------


def books_are_emptied(ws: Workspace) -> bool:
    """Whether a pushed ``paths.books`` hides the books, so that the same file is booked again."""
    push_values(ws, ("paths.books", "ledger"))
    ws.drop("january.csv")
    ws("agent", "run", "ingest")
    return (ws.root / "ledger/2025/01/journal.csv").exists() or not ws.entries()


def test_pushed_books_elsewhere_are_not_looked_at(posted: Workspace) -> None:
    """Row D20."""
    before = posted.json("journal", "balance")
    assert not books_are_emptied(posted)
    assert posted.json("journal", "balance") == before and len(posted.entries()) == 4
    done = posted("check")
    assert done.code == 0 and "4 entries" in done.out and f"{PENDING}paths.books" in done.err


def test_without_the_approval_they_would_be(posted: Workspace, unverified: None) -> None:
    assert books_are_emptied(posted)


def test_a_damaged_record_does_not_bring_them_into_force(posted: Workspace) -> None:
    """What was last in force on this machine is remembered outside of the repository; but nothing runs."""
    posted.ok("status")  # they are in force here
    for damage in ("{}", None):
        push_values(posted, ("paths.books", "ledger" if damage else "ledgers"))
        posted.put(RECORD, damage) if damage else (posted.root / RECORD).unlink()
        posted.git("commit", "-qam", "config")
        assert len(posted.entries()) == 4
        assert {each["check"] for each in posted("check", "--json").json["violations"]} == {"approval"}
        refused(posted("agent", "run", "ingest"), 3, "so nothing is run or decided", "cleared config approve")


def test_pushed_accounts_book_nothing_elsewhere(ws: Workspace) -> None:
    """Row D20: payments against what the member drew, instead of from the bank."""
    push(ws, ws.read("config.yaml").replace("ledger_account: 1010", "ledger_account: 3200", 1))
    ws.drop("february.csv", FEBRUARY)
    done = ws("agent", "run", "ingest", "--json")
    assert done.code == 0 and "bank_accounts.checking.ledger_account" in done.err
    numbers = {line["account_id"] for entry in ws.entries() for line in entry["lines"]}
    assert 1010 in numbers and 3200 not in numbers
    assert [row["ledger_account"] for row in ws.json("bank", "list")] == [1010]


def test_a_pushed_opening_balance_is_not_posted(ws: Workspace) -> None:
    opening = "opening: { date: 2024-12-31, balance: 7777.00 }"
    push(ws, ws.read("config.yaml").replace("# opening: { date: 2024-12-31, balance: 1250.00 }", opening))
    refused(ws("journal", "open"), 3, "no opening balance to post")


def test_a_pushed_currency_zone_or_year_changes_no_figure(posted: Workspace) -> None:
    def read_report(name: str) -> dict[str, object]:
        return {**posted.json("report", name), "commit": ""}

    shown = {name: read_report(name) for name in ("pnl", "balance-sheet")}
    push_values(
        posted,
        ("business.currency", "JPY"),
        ("business.timezone", "Asia/Tokyo"),
        ("fiscal.start_month", "7"),
        ("business.entity_type", "generic"),
        ("business.name", "Other"),
    )
    assert {name: read_report(name) for name in shown} == shown
    assert posted.json("config", "get", "business.currency") == "USD"


def test_a_pushed_profile_reads_no_file_otherwise(ws: Workspace) -> None:
    profile = (
        "  profiles:\n    chase_checking:\n      columns: {date: Posting Date, description: Type, amount: Balance}\n"
    )
    push(ws, ws.read("config.yaml").replace("  # profiles:\n", profile, 1))
    ws.drop("february.csv", FEBRUARY)
    ws.run("ingest")
    assert sorted(e["description"] for e in ws.entries()) == ["GITHUB *PRO", "RENT"]


# -- the loop ---------------------------------------------------------------------------------------------------------


def test_a_pushed_runtime_directory_is_not_used_nor_one_that_git_has_files_in(ws: Workspace) -> None:
    """Row D20."""
    ws.put("data/jobs/job_20250210T060000Z_x.result.json", json.dumps({"status": "completed"}))
    ws.commit("data/jobs/job_20250210T060000Z_x.result.json")
    push(ws, ws.read("config.yaml") + "\nloop:\n  runtime_dir: data\n")
    assert "data/" not in ws.ok("loop", "init").out and (ws.root / ".cleared/loop").is_dir()
    told = "loop.runtime_dir lies in data/, in which the last commit has files"
    refused(take_shown(ws, "config", "approve"), 3, told)
    ws.ok("config", "set", "loop.runtime_dir", "elsewhere/loop")
    ws.ok("loop", "init")
    ws.put("elsewhere/loop/jobs/x.result.json", "{}")
    ws.commit("elsewhere/loop/jobs/x.result.json")
    for argv in (["loop", "status"], ["loop", "jobs"], ["loop", "run", "--once"]):
        refused(ws(*argv), 3, "loop.runtime_dir lies in elsewhere/")


@pytest.mark.parametrize("key", ["runtime_dir", "log_dir"])
@pytest.mark.parametrize("path", ["../../.ssh", "/tmp/x", "a/../../b", "~/x/../..", ".git/x"])
def test_no_setting_leads_the_loop_out_of_the_workspace(ws: Workspace, key: str, path: str) -> None:
    done = ws("config", "set", f"loop.{key}", path)
    assert done.code in (2, 4) and f"loop.{key}" in done.err, done


@pytest.mark.parametrize("key", ["runtime_dir", "log_dir"])
def test_nor_does_a_link(ws: Workspace, tmp_path: Path, key: str) -> None:
    (tmp_path / "target").mkdir()
    (ws.root / "away").symlink_to(tmp_path / "target")
    refused(ws("config", "set", f"loop.{key}", "away/loop"), 3, f"loop.{key} leads out of the workspace")
    ws.ok("config", "set", f"loop.{key}", "out/loop")
    (ws.root / "out").symlink_to(tmp_path / "target")
    refused(ws("loop", "run", "--once"), 3, f"loop.{key} leads out of the workspace")
    assert not list((tmp_path / "target").iterdir())


def test_what_jobs_may_not_read_stays_closed(ws: Workspace) -> None:
    ws.ok("config", "set", "loop.forbidden_paths", "[private/*]")
    text = ws.read("config.yaml")
    push(ws, text.replace("[private/*]", "[]") if "[private/*]" in text else text.replace('["private/*"]', "[]"))
    assert ws.json("config", "get", "loop.forbidden_paths") == ["private/*"]


# -- every key --------------------------------------------------------------------------------------------------------


def list_keys(section: type, path: str = "") -> Iterator[tuple[str, str]]:
    """Key and what is said of its approval where it is declared."""
    for key, field in setting_fields(section).items():
        if field.section or field.entries:
            yield from list_keys(field.section or field.entries or section, f"{path}{key}.")
            if not field.section:
                yield path + key, field.approval
        else:
            yield path + key, field.approval


def test_each_setting_says_where_it_is_declared_whether_it_needs_approval() -> None:
    silent = [key for key, approval in list_keys(model.Config) if approval not in ("protected", "harmless", "secret")]
    assert silent == [], "declare them with protected(…), or with harmless(…) where nobody is harmed by any value"


def test_few_settings_are_harmless_and_none_of_an_entry() -> None:
    """Whoever adds to them says here why any value of it, pushed by anybody, is at worst a nuisance."""
    harmless = {key for key, approval in list_keys(model.Config) if approval != "protected"}
    assert harmless == {
        "lock.wait_seconds",  # how long a command waits for another
        "review.remind_after",  # when one is reminded of a card
        "business.thousands",  # how amounts are spaced on the page, one of three ways
        "notifications.smtp_password",  # a secret, which a record in the repository cannot hold
    }
    assert not any(is_protected(key) for key in harmless)


@pytest.mark.parametrize(
    "pair",
    [
        ("thresholds.auto_confirm", "0.01"),
        ("git.author_name", "Somebody"),
        ("notifications.on_failure", "false"),
        ("import.keep", "local"),
        ("import.settle_seconds", "0"),
        ("receipts.keep", "local"),
        ("sandbox.confine", "off"),
        ("limits.max_amount", "1"),
        ("webhooks.rate", "999999"),
        ("llm.base_url", "http://127.0.0.1:1/v1"),
        ("loop.ai.enabled", "true"),
        ("tasks.command", "sh"),
        ("mcp.allow_run", "true"),
        ("loop.keep_jobs", "25"),
    ],
)
def test_a_pushed_value_is_not_in_force_and_is_told_of(ws: Workspace, pair: tuple[str, str]) -> None:
    key = pair[0]
    before = ws("config", "get", key, "--json").out
    push_values(ws, pair)
    done = ws("config", "get", key, "--json")
    assert done.out == before and f"{PENDING}{key}. " in done.err and "cleared config approve" in done.err
    assert [row[0] for row in take_ok(ws, "config", "approve", "--json").json["policy"]] == [key]
    assert ws("config", "get", key, "--json").out != before


# -- what one writes oneself ------------------------------------------------------------------------------------------


def test_ones_own_change_approves_nothing_that_was_pushed(ws: Workspace) -> None:
    """Not beside it, not in the same list, not in the same entry."""
    push_values(
        ws,
        ("bank_accounts.checking.ledger_account", "3200"),
        ("notifications.command", "[/bin/false]"),
        ("notifications.method", "exec"),
    )
    ws.ok("config", "set", "bank_accounts.checking.name", "Main account")
    ws.ok("config", "set", "thresholds.auto_confirm", "0.9")
    (ws.root / "card.csv").write_text("Date,Text,Amount\n2025-01-03,TEA,-4.00\n2025-01-04,CAKE,-5.00\n")
    ws.ok(
        "bank",
        "add",
        str(ws.root / "card.csv"),
        "--id",
        "card",
        "--type",
        "credit_card",
        "--ledger-account",
        "2010",
        "--yes",
    )
    shown = {row["id"]: row for row in ws.json("bank", "list")}
    assert shown["checking"]["ledger_account"] == 1010 and shown["checking"]["name"] == "Main account"
    assert shown["card"]["ledger_account"] == 2010
    assert ws.json("config", "get", "notifications.method") == "none"
    waiting = ws("config", "get", "business.name").err
    for key in ("bank_accounts.checking.ledger_account", "notifications.method", "notifications.command"):
        assert key in waiting
    assert "card" not in waiting


def test_a_bank_that_one_adds_is_used_without_another_question(ws: Workspace) -> None:
    (ws.root / "card.csv").write_text("Date,Text,Amount\n2025-01-03,TEA,-4.00\n2025-01-04,CAKE,-5.00\n")
    done = ws.ok(
        "bank",
        "add",
        str(ws.root / "card.csv"),
        "--id",
        "card",
        "--type",
        "credit_card",
        "--ledger-account",
        "2010",
        "--yes",
    )
    assert PENDING not in done.err
    ws.drop("card.csv", (ws.root / "card.csv").read_bytes())
    done = ws("agent", "run", "ingest", "--json")
    assert done.code == 0 and done.json["imported"] if "imported" in done.json else done.code == 0
    assert PENDING not in done.err and len(ws.entries()) == 2


# -- clones -----------------------------------------------------------------------------------------------------------


def test_a_clone_opens_whatever_is_approved_and_added(posted: Workspace, tmp_path: Path) -> None:
    """A setting approved, a bank with columns of its own added: each command that looks or mends works in a clone."""
    posted.ok("config", "set", "thresholds.auto_confirm", "0.9")
    posted.put("card.csv", "Date,Text,Amount\n2025-01-03,TEA,-4.00\n2025-01-04,CAKE,-5.00\n")
    posted.ok(
        "bank",
        "add",
        str(posted.root / "card.csv"),
        "--id",
        "card",
        "--type",
        "credit_card",
        "--ledger-account",
        "2010",
        "--yes",
    )
    subprocess.run(
        ["git", "clone", "-q", f"file://{posted.root}", str(tmp_path / "clone")], check=True, env=os.environ | IDENTITY
    )
    clone = Workspace(tmp_path / "clone")
    for argv in (
        ["status"],
        ["journal", "balance"],
        ["queue", "list"],
        ["bank", "list"],
        ["trust", "--list"],
        ["doctor"],
    ):
        assert clone(*argv).code in (0, 1, 3), argv
        assert "unknown key" not in clone(*argv).err
    assert {row["id"] for row in clone.json("bank", "list")} == {"checking", "card"}
    take_ok(clone, "trust", "--yes")
    assert "nothing to approve" in take_ok(clone, "config", "approve").err
    clone.drop("card.csv", (posted.root / "card.csv").read_bytes())
    clone.run("ingest")
    clone.in_order()


@pytest.mark.parametrize(
    "policy", [{"no.such.key": 1}, {"sandbox.timeout": "soon"}, {"bank_accounts.x.y.z": 1}, {"llm": 1}]
)
def test_approved_settings_of_another_version_can_be_mended(ws: Workspace, policy: dict[str, object]) -> None:
    """A record that is genuine, and that this version of the program cannot read."""
    from cleared.trust.approval_record import ApprovalRecord, parse_record, sign_record
    from cleared.trust.keys import own_key

    old, key = parse_record(ws.read(RECORD).encode()), own_key(ws.root)
    assert key is not None
    record = sign_record(
        ApprovalRecord("config", RECORD, old.digest, old.by, old.at, old.workspace, policy={**old.policy, **policy}),
        key,
    )
    ws.put(RECORD, record.render())
    ws.commit(RECORD)
    refused(ws("agent", "run", "ingest"), 3, "not valid in this version", "cleared config approve")
    for argv in (["status"], ["trust"], ["journal", "list"], ["config", "get", "business.name"]):
        assert ws(*argv).code in (0, 1), argv
    take_ok(ws, "config", "approve")
    ws.run("ingest")


def test_each_key_of_a_whole_configuration_is_approved_and_rebuilt_alike(ws: Workspace) -> None:
    """What is approved key by key is what the file says as a whole."""
    profile = "mine: {columns: {date: Day, description: Text, amount: Sum}, delimiter: ';', pending: [open]}"
    text = (
        ws.read("config.yaml").replace(
            "  # profiles:\n",
            f"  profiles:\n    {profile}\n",
            1,
        )
        + "\nllm:\n  prices: {gpt-4.1: {input: 1, output: 2.5}, 'a/b.c:1': {input: 0, output: 0}}\n"
    )
    ws.put("config.yaml", text)
    take_ok(ws, "config", "approve")
    wanted = load_config(text)
    policy = json.loads(ws.read(RECORD))["policy"]
    assert policy == protected_settings_of(wanted) and compare_settings(policy, protected_settings_of(wanted)) == []
    from cleared.workspace.settings.protected_settings import with_protected_settings

    assert with_protected_settings(load_config(""), policy) == wanted


def test_a_copied_clone_that_nobody_trusted_shows_its_books(posted: Workspace, tmp_path: Path) -> None:
    """By those settings that only describe them; nothing of the rest is in force."""
    push_values(posted, ("sandbox.confine", "off"))
    shutil.copytree(posted.root, tmp_path / "copy")
    copy = Workspace(tmp_path / "copy")
    assert len(copy.entries()) == 4 and copy.json("config", "get", "sandbox.confine") == "best"
    refused(copy("queue", "approve", copy.cards()[0]["id"]), 3, "cleared trust")
