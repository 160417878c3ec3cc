"""Settings: what is policy takes effect when a person approves it, everything else at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace, nothing_posted, refused, take_ok, take_shown, unchanged

from cleared.workspace.settings.editing import set_value

HEADER = '"""\nname: Probe\ntrigger: on_demand\n"""\n'
RECORD = "agents/approvals/config.json"
POST = 'journal_add_double(date="2025-01-03", description="x", debit_account=5020, credit_account=1010, amount="99")\n'

POLICY = [
    ("gate.behaviour", "block"),
    ("gate.history_runs", "7"),
    ("sandbox.timeout", "17"),
    ("sandbox.memory_mb", "100"),
    ("sandbox.max_calls", "1234"),
    ("thresholds.auto_confirm", "0.99"),
    ("limits.max_amount", "123.45"),
    ("self_improvement.max_changes_per_night", "3"),
    ("import.plugins", "[mine]"),
    ("git.auto_commit", "false"),
]


def by_hand(ws: Workspace, *pairs: tuple[str, str]) -> None:
    """Edit the file as an editor does."""
    text = ws.read("config.yaml")
    for key, value in pairs:
        text = set_value(text, key, value)
    ws.put("config.yaml", text)


def go_live(ws: Workspace, body: str, name: str = "probe") -> None:
    ws.put(f"agents/{name}.py", HEADER + body + "\n")
    take_ok(ws, "agent", "approve", ws.json("agent", "propose", name)["id"])


def in_force(ws: Workspace, key: str) -> str:
    return ws.ok("config", "get", key).out.strip()


def record(ws: Workspace) -> dict[str, Any]:
    return dict(json.loads(ws.read(RECORD)))


# -- edited by hand ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "shipped", "edited"),
    [
        ("thresholds.review", "0.7", "0.2"),
        ("thresholds.high_confidence", "0.9", "0.5"),
        ("thresholds.anomaly_stddev", "2.0", "9.0"),
        ("self_improvement.enabled", "false", "true"),
        ("self_improvement.auto_revert_on.invariant_violations", "1", "7"),
    ],
)
def test_a_reserved_setting_that_a_script_reads_waits_for_approval(
    ws: Workspace, key: str, shipped: str, edited: str
) -> None:
    """The program reads none of these; an approved script may, and an edit of the file alone does not steer it."""
    go_live(ws, POST.replace('"x"', f"str(config_get({key!r})).lower()"))

    def value_read_by_script() -> str:
        (entry,) = ws.run("probe")["entries"]
        return str(entry["description"])

    assert value_read_by_script() == shipped
    by_hand(ws, (key, edited))
    assert value_read_by_script() == shipped
    ws.commit("config.yaml")
    assert value_read_by_script() == shipped
    assert key in take_ok(ws, "config", "approve").out
    assert value_read_by_script() == edited


def test_every_policy_key_waits_for_approval_when_edited_by_hand(ws: Workspace) -> None:
    """Committed by hand or not; all are told, and one command approves them, in one commit."""
    before, begun = {key: in_force(ws, key) for key, _ in POLICY}, set(record(ws)["policy"])
    by_hand(ws, *POLICY)
    assert {key: in_force(ws, key) for key, _ in POLICY} == before
    ws.commit("config.yaml")
    assert {key: in_force(ws, key) for key, _ in POLICY} == before
    head = ws.head()
    said = take_ok(ws, "config", "approve")
    assert all(f"{key}: " in said.out for key, _ in POLICY) and len(said.out.splitlines()) == len(POLICY)
    after = {key: in_force(ws, key) for key, _ in POLICY}
    assert all(after[key] != before[key] for key, _ in POLICY)
    assert ws.git("rev-list", "--count", f"{head}..HEAD").strip() == "1"
    assert set(record(ws)["policy"]) == {key for key, _ in POLICY} | begun
    ws.in_order()


def test_a_threshold_edited_by_hand_is_not_what_a_script_sees(ws: Workspace) -> None:
    go_live(ws, 'config_get("thresholds.auto_confirm")')
    by_hand(ws, ("thresholds.auto_confirm", "0.5"))
    done = ws("agent", "run", "probe", "--json")
    assert done.json["result"] == 0.95, done
    waits = [line for line in done.err.splitlines() if "thresholds.auto_confirm" in line]
    assert len(waits) == 1 and "cleared config approve" in waits[0]
    take_ok(ws, "config", "approve")
    done = ws("agent", "run", "probe", "--json")
    assert done.json["result"] == 0.5 and "approve" not in done.err


def test_limits_of_the_sandbox_and_the_books_hold_from_their_approval_on(ws: Workspace) -> None:
    go_live(ws, POST + "for n in [1, 2, 3]:\n    accounts_list()\n")
    by_hand(ws, ("sandbox.max_calls", "3"), ("limits.max_amount", "50"), ("git.auto_commit", "false"))
    assert len(ws.run("probe")["entries"]) == 1
    take_ok(ws, "config", "approve")
    with nothing_posted(ws):
        assert "50" in ws.run("probe", code=1)["error"]["message"]
    ws.config("limits.max_amount=100")
    with nothing_posted(ws):
        assert "call" in ws.run("probe", code=1)["error"]["message"]
    ws.config("sandbox.max_calls=100")
    done = ws("agent", "run", "probe", "--json")
    assert done.code == 0 and done.json["commits"] == [] and "auto_commit" in done.err


def test_harmless_keys_take_effect_at_once(ws: Workspace) -> None:
    go_live(ws, 'config_get("review.remind_after")')
    by_hand(ws, ("review.remind_after", "9d"))
    done = ws("agent", "run", "probe", "--json")
    assert done.json["result"] == "9d" and "approve" not in done.err
    assert "nothing to approve" not in take_ok(ws, "config", "approve").err, "the file is committed along"
    assert "nothing to approve" in take_ok(ws, "config", "approve").err
    ws.in_order()


def test_approving_twice_approves_nothing_the_second_time(ws: Workspace) -> None:
    by_hand(ws, ("sandbox.timeout", "17"))
    assert take_ok(ws, "config", "approve", "--json").json["policy"] == [["sandbox.timeout", 30.0, 17.0]]
    with unchanged(ws):
        assert take_ok(ws, "config", "approve", "--json").json == {"commit": None, "policy": []}
        assert "nothing to approve" in take_ok(ws, "config", "approve").err


def test_a_key_taken_back_by_hand_stays_in_force_until_that_is_approved(ws: Workspace) -> None:
    text = ws.read("config.yaml")
    ws.config("sandbox.timeout=17")
    ws.put("config.yaml", text)
    assert in_force(ws, "sandbox.timeout") == "17.0"
    assert "sandbox.timeout" in ws("agent", "run", "ingest").err
    take_ok(ws, "config", "approve")
    assert in_force(ws, "sandbox.timeout") == "30.0"


@pytest.mark.parametrize("text", ["sandbox: [", "sandbox:\n  timeout: soon\n", "nonsense: 1\n"])
def test_a_file_that_is_not_valid_is_not_approved(ws: Workspace, text: str) -> None:
    ws.put("config.yaml", ws.read("config.yaml") + text)
    with unchanged(ws):
        refused(take_shown(ws, "config", "approve"), 4, "config.yaml")
        refused(ws("config", "set", "sandbox.timeout", "9"), 4, "config.yaml")


# -- config set -------------------------------------------------------------------------------------------------------


def test_setting_policy_is_edit_check_and_approval_in_one_commit(ws: Workspace) -> None:
    head, begun = ws.head(), record(ws)["policy"]
    said = ws.ok("config", "set", "thresholds.auto_confirm", "0.9")
    assert "thresholds.auto_confirm: 0.95 → 0.9" in said.out
    assert in_force(ws, "thresholds.auto_confirm") == "0.9"
    shown = ws.git("show", "--format=%P", "--name-only").split()
    assert shown[0] == head and {"config.yaml", RECORD} <= set(shown[1:])
    assert record(ws)["policy"] == begun | {"thresholds.auto_confirm": 0.9} and record(ws)["signature"]
    assert "Decision" in ws.trailers()
    ws.in_order()


def test_setting_a_harmless_key_is_one_commit_without_a_record(ws: Workspace) -> None:
    head = ws.head()
    ws.ok("config", "set", "review.remind_after", "9d")
    shown = ws.git("show", "--format=%P", "--name-only").split()
    assert shown[0] == head and "config.yaml" in shown and RECORD not in shown
    assert in_force(ws, "review.remind_after") == "9d"
    ws.in_order()


def test_a_secret_is_never_committed(ws: Workspace) -> None:
    head = ws.head()
    said = ws.ok("config", "set", "notifications.smtp_password", "sk-very-secret-1")
    assert "sk-very" not in said.out + said.err and "stays out of git" in said.err
    assert "sk-very-secret-1" in ws.read("config.yaml") and ws.head() == head
    ws.config("sandbox.timeout=17", "business.name=Other")
    assert ws.json("config", "set", "business.name", "Third")["file_committed"] is False
    by_hand(ws, ("sandbox.max_calls", "99"))
    assert "stays out of git" in take_ok(ws, "config", "approve").err
    assert in_force(ws, "sandbox.max_calls") == "99" and in_force(ws, "sandbox.timeout") == "17.0"
    assert "sk-very-secret-1" in ws.read("config.yaml")
    assert "sk-very-secret-1" not in ws.git("log", "-p", "--all")


def test_edits_of_yours_are_not_swept_into_the_commit(ws: Workspace) -> None:
    """Neither committed nor approved along with another key, and not lost."""
    begun = record(ws)["policy"]
    by_hand(ws, ("business.name", "Mine"), ("sandbox.timeout", "17"))
    ws.put("config.yaml", ws.read("config.yaml") + "# a note of mine\n")
    for key, value in (("thresholds.auto_confirm", "0.9"), ("business.currency", "CHF")):
        assert "other edits of yours" in ws.ok("config", "set", key, value).err
    committed, working = ws.git("show", "HEAD:config.yaml"), ws.read("config.yaml")
    assert not any(text in committed for text in ("Mine", "timeout: 17", "a note of mine"))
    assert all(text in working for text in ("0.9", "CHF", "Mine", "timeout: 17", "# a note of mine"))
    assert record(ws)["policy"] == begun | {"thresholds.auto_confirm": 0.9, "business.currency": "CHF"}
    assert in_force(ws, "thresholds.auto_confirm") == "0.9" and in_force(ws, "sandbox.timeout") == "30.0"
    take_ok(ws, "config", "approve")
    assert in_force(ws, "sandbox.timeout") == "17.0" and in_force(ws, "thresholds.auto_confirm") == "0.9"
    assert ws.git("show", "HEAD:config.yaml") == working


def test_an_edit_of_the_very_key_is_committed_with_it(ws: Workspace) -> None:
    by_hand(ws, ("sandbox.timeout", "17"))
    ws.ok("config", "set", "sandbox.timeout", "18")
    assert "timeout: 18" in ws.git("show", "HEAD:config.yaml") and in_force(ws, "sandbox.timeout") == "18.0"
    ws.in_order()


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("sandbox.timeout", "soon", "sandbox.timeout"),
        ("sandbox.timeout", "0", "timeout"),
        ("no.such.key", "1", "no key"),
        ("sandbox", "1", "section"),
        ("thresholds.auto_confirm", "7", "auto_confirm"),
    ],
)
def test_what_is_not_valid_is_not_set(ws: Workspace, key: str, value: str, said: str) -> None:
    with unchanged(ws):
        done = ws("config", "set", key, value)
        assert done.code in (2, 4), done
        refused(done, done.code, said)


def test_a_job_sets_and_approves_no_policy(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    by_hand(ws, ("sandbox.timeout", "17"))
    monkeypatch.setenv("CLEARED_JOB", "7")
    with unchanged(ws):
        refused(ws("config", "set", "sandbox.timeout", "99"), 3, "not for a job")
        refused(take_shown(ws, "config", "approve", "--json"), 3, "not for a job")
    assert in_force(ws, "sandbox.timeout") == "30.0"


# -- the gate's own rules ---------------------------------------------------------------------------------------------

WATCHED = "if not ctx_dry_run():\n    " + POST


def rules(ws: Workspace, **values: str) -> None:
    lines = "".join(f"    {k}: {v}\n" for k, v in values.items())
    ws.put("config.yaml", ws.read("config.yaml") + f"\ngate:\n  rules:\n{lines}")


def watched(ws: Workspace, code: int) -> dict[str, Any]:
    done = ws("agent", "check", "probe", "--json")
    assert done.code == code, done
    return next(dict(s) for s in done.json["probe"]["stages"] if s["stage"] == "watched")


def test_the_gates_own_rules_change_only_by_a_proposal(ws: Workspace) -> None:
    with unchanged(ws):
        refused(ws("config", "set", "gate.rules.watched", "off"), 3, "cleared agent propose config.yaml")
    rules(ws, watched="off")
    with unchanged(ws):
        refused(
            take_shown(ws, "config", "approve", "--json"), 3, "gate.rules.watched", "cleared agent propose config.yaml"
        )
    ws.put("agents/probe.py", HEADER + WATCHED)
    assert watched(ws, 1)["status"] == "failed", "not in force yet"
    proposal = ws.json("agent", "propose", "config.yaml")
    assert any("gate.rules.watched" in line for line in proposal["card"])
    assert watched(ws, 1)["status"] == "failed"
    take_ok(ws, "agent", "approve", proposal["id"])
    assert watched(ws, 0) | {"findings": [], "warnings": []} == watched(ws, 0)
    assert "approve" not in ws("agent", "run", "ingest").err
    ws.in_order("agents/probe.py")


def test_a_rule_can_be_turned_down_to_a_warning(ws: Workspace) -> None:
    rules(ws, watched="warn")
    ws.commit("config.yaml")
    take_ok(ws, "agent", "approve", ws.json("agent", "propose", "config.yaml")["id"])
    ws.put("agents/probe.py", HEADER + WATCHED)
    assert {w["rule"] for w in watched(ws, 0)["warnings"]} == {"watched"}


def test_a_change_of_the_rules_stands_alone(ws: Workspace) -> None:
    rules(ws, watched="off")
    ws.put("agents/probe.py", HEADER + WATCHED)
    with unchanged(ws):
        done = ws("agent", "propose", "config.yaml", "probe", "--json")
        assert done.code == 1 and "policy-alone" in {f["rule"] for f in done.json["findings"]}


@pytest.mark.parametrize("rule", ["rehearsal", "invariants", "syntax"])
def test_some_rules_no_setting_turns_off(ws: Workspace, rule: str) -> None:
    """Whatever the file says: a script that fails, or is none, does not pass."""
    body = {
        "rehearsal": "accounts_get(9998 + 1)\n",
        "syntax": "a b\n",
        "invariants": 'for f in importer_scan():\n    importer_mark_processed(f["name"])\n',
    }[rule]
    rules(ws, **{rule: "off"})
    done = ws("agent", "propose", "config.yaml", "--json")
    if done.code == 0:
        take_ok(ws, "agent", "approve", done.json["id"])
    ws.put("agents/probe.py", HEADER + body)
    assert ws("agent", "check", "probe").code == 1


# -- records that cannot be verified ----------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["forged", "truncated", "empty", "deep", "folder", "link"])
def test_an_approval_of_settings_that_cannot_be_verified_stops_runs(ws: Workspace, damage: str) -> None:
    ws.config("thresholds.auto_confirm=0.99")
    full = ws.root / RECORD
    text = full.read_text()
    if damage == "folder":
        full.unlink()
        full.mkdir()
        (full / "x").write_text("")
    elif damage == "link":
        full.unlink()
        full.symlink_to("/etc/hostname")
    else:
        full.write_text(
            {"forged": text.replace("0.99", "0.10"), "truncated": text[:-30], "empty": "", "deep": "[" * 200_000}[
                damage
            ]
        )
    ws.git("add", "-A", "agents")
    ws.git("commit", "-qm", "by hand")
    with unchanged(ws):
        refused(ws("agent", "run", "ingest"), 3, "cannot be verified", "cleared config approve")
    assert ws("journal", "list").code == 0
    if damage not in ("folder", "link"):
        take_ok(ws, "config", "approve")
        ws.run("ingest")
        assert in_force(ws, "thresholds.auto_confirm") == "0.99"


# -- tests ------------------------------------------------------------------------------------------------------------


def test_setting_what_would_break_a_case_is_refused(posted: Workspace) -> None:
    """Both ways; nothing is changed. With the case out of the way by a proposal, it goes."""
    ws = posted
    run = ws.json("run", "list")[0]["run_id"]
    case = ws.json("test", "add", run)
    with unchanged(ws):
        refused(ws("config", "set", "thresholds.auto_confirm", "0.97"), 1, "nothing was changed", case["path"])
    by_hand(ws, ("thresholds.auto_confirm", "0.97"))
    with unchanged(ws):
        refused(take_shown(ws, "config", "approve", "--json"), 1, "nothing was changed", case["path"])
    assert in_force(ws, "thresholds.auto_confirm") == "0.95"
    ws.git("checkout", "-q", "config.yaml")
    ws.config("thresholds.auto_confirm=0.94")
    (ws.root / case["path"]).unlink()
    take_ok(ws, "agent", "approve", ws.json("agent", "propose", case["path"])["id"])
    ws.config("thresholds.auto_confirm=0.97")


@pytest.mark.parametrize(
    ("rule", "said"),
    [("round-mony", "Did you mean round-money?"), ("header-key", "cannot be switched"), ("x", "is no rule")],
)
def test_a_rule_that_cannot_be_switched_is_a_finding(ws: Workspace, rule: str, said: str) -> None:
    config = ws.root / "config.yaml"
    config.write_text(config.read_text() + f"\ngate:\n  rules: {{ {rule}: off }}\n")
    done = ws("agent", "propose", "config.yaml")
    assert done.code == 1 and "[policy-rule]" in done.err and said in done.err


def test_trust_prints_one_value_where_it_refuses(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws.agent("probe", "1")
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "another"))
    done = ws("trust", "--json")
    assert done.code == 3 and {s["trusted"] for s in done.json} == {False}


def test_settings_that_were_approved_before_do_not_come_back(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever can push has every older record with its signature; where the newest was approved none of them counts."""
    ws.config("sandbox.timeout=29")
    older = {path: ws.read(path) for path in ("config.yaml", "agents/approvals/config.json")}
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-11T06:00:00Z")
    ws.config("sandbox.timeout=5")
    for path, text in older.items():
        ws.put(path, text)
    ws.git("commit", "-qam", "an older approval")
    refusal = ws("agent", "run", "ingest")
    assert refusal.code == 3 and "config.json: the approval of these settings cannot be verified" in refusal.err
    take_ok(ws, "config", "approve")
    assert ws.run("ingest")["status"] == "succeeded"
