"""``cleared demo`` does the main job on a sample and tells it: on a terminal, plainly, and as JSON."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


def demo(*argv: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """As a user without a git identity, a home, or a network."""
    bare = {"PATH": os.environ["PATH"], "HOME": str(cwd), "TMPDIR": str(cwd), "https_proxy": "http://127.0.0.1:9"}
    return subprocess.run(
        [sys.executable, "-m", "cleared", "demo", *argv],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=bare | (env or {}),
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("demo")
    done = demo("books", "--json", cwd=folder, env={"CLEARED_CLOCK": "2025-07-01T09:00:00Z"})
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["workspace"] == str(folder / "books")
    return dict(found)


def test_everything_is_booked_once_and_agrees_with_the_bank(told: dict[str, Any]) -> None:
    assert told["run"]["status"] == "succeeded"
    assert told["run"]["result"] == {"imported": 508, "confirmed": 440, "review": 68}
    assert [m["month"] for m in told["months"]] == [f"2025-0{n}" for n in range(1, 7)]
    assert sum(m["entries"] for m in told["months"]) == 509  # and what makes a private purchase a draw
    assert (told["check"], told["trial_balance"]) == ([], "0.00")
    assert [(b["bank"], b["books"]) for b in told["balances"]] == [("48722.95", "48722.95")]


def test_the_run_is_one_commit_and_the_decision_another(told: dict[str, Any]) -> None:
    assert len(told["run"]["commits"]) == 1
    assert [c["message"].split(":")[0] for c in told["log"]] == ["void", "import", "agent", "agent", "init"]
    root = told["workspace"]
    status = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=True)
    assert status.stdout == ""
    assert [p.name for p in Path(root, "import").glob("*.csv")] == ["Chase7733_Activity_2025-Q3.csv"]


def test_the_queue_has_cards_of_several_kinds(told: dict[str, Any]) -> None:
    """The login page is refused. That April begins early is no gap in the balance, and nobody is asked about rows that
    came before: they have the same balances."""
    assert told["queue"]["kinds"] == {"bad_file": 1, "entry": 67} and told["known_rows"] == 4
    decision = told["decision"]
    listed = subprocess.run(
        [sys.executable, "-m", "cleared", "queue", "list", "--status", "all", "--json"],
        cwd=told["workspace"],
        capture_output=True,
        text=True,
        check=True,
    )
    cards = {c["id"]: c for c in json.loads(listed.stdout)}
    assert cards[decision["card"]]["status"] == "resolved"
    assert cards[decision["card"]]["resolution"].startswith("personal")


def test_all_figures_are_those_of_the_workspace_as_it_is_left(told: dict[str, Any]) -> None:
    """Fault 17: after the demo's last act, not from before it: the commands say the same."""

    def said(*argv: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "cleared", *argv, "--json"],
            cwd=told["workspace"],
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    balances = {row["account_id"]: row["balance"] for row in said("journal", "balance")}
    assert {a["account_id"]: a["balance"] for a in told["accounts"]} == balances
    assert len(said("queue", "list")) == told["queue"]["open"]
    entries = said("journal", "list")
    assert len(entries) == sum(m["entries"] for m in told["months"])
    waiting = [e for e in entries if e["status"] == "pending-review"]
    assert len(waiting) == sum(m["waiting"] for m in told["months"])


def test_three_decisions_of_its_owner_become_one_card_in_words(tmp_path: Path) -> None:
    """The demo's agent is the starter with a table of its own, so a row is said in words."""
    clock = {"CLEARED_CLOCK": "2025-07-01T09:00:00Z"}
    assert demo("books", cwd=tmp_path, env=clock).returncode == 0

    def cleared(*argv: str) -> str:
        env = {**os.environ, "HOME": str(tmp_path), **clock}
        env.pop("CLEARED_HOME", None)
        command = [sys.executable, "-m", "cleared", *argv]
        done = subprocess.run(command, cwd=tmp_path / "books", env=env, capture_output=True, text=True, check=True)
        return done.stdout

    cards = [card for card in json.loads(cleared("queue", "list", "--json")) if "BLUEBIRD" in card["title"]]
    cleared("queue", "correct", *(card["id"] for card in cards), "--account", "5040")
    done = json.loads(cleared("improve", "--json"))
    says = "BLUEBIRD HOLDINGS (money out, from 20, up to 500) → 5040 from now on, as you decided 3 of 3 times."
    assert [each["says"] for each in done["proposed"]] == [f"{says} It would have booked 3 past lines, all as you did."]
    card = next(card for card in json.loads(cleared("queue", "list", "--json")) if card["kind"] == "proposal")
    assert "go to 5040 Professional services, without asking you" in cleared("queue", "show", card["id"])


def test_plain_text_names_what_was_made_and_what_comes_next(tmp_path: Path) -> None:
    done = demo(cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert all(line == line.rstrip() for line in done.stdout.splitlines())
    for text in ("508 transactions", "The overlap was noticed", "every invariant holds", "cleared queue list"):
        assert text in done.stdout
    made = next(p for p in tmp_path.iterdir() if p.name.startswith("cleared-demo-"))
    assert f"The workspace is {made} (a temporary directory" in done.stdout


def test_a_directory_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = demo(str(tmp_path), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
    assert "not empty" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_what_fails_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cleared.base.errors import CheckFailed
    from cleared.cli.demo import walkthrough as module

    monkeypatch.setattr(module, "agent_text", lambda: '"""\nname: Broken\ntrigger: on_demand\n"""\n1 / 0\n')
    with pytest.raises(CheckFailed, match="division"):
        module.run_demo(tmp_path / "books", False)
