"""Whoever can push writes a ``config.yaml`` that is not valid: it hinders no command that mends it or reads."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from os import environ
from pathlib import Path

import pytest
from harness import IDENTITY, Workspace, refused, take_ok, take_shown

from cleared.changes import workspace_opening
from cleared.trust import policy_in_force

RECORD = "agents/approvals/config.json"
WRONG_FOLDER = "\nloop:\n  log_dir: ../x   # theirs\n"
PUSHED = {
    "a folder outside": WRONG_FOLDER,
    "an unknown key": "\nfoo: 1\n",
    "an unknown key with a strange name": "\nbusiness2:\n  'a $b.c': 1\n",
    "a section given twice": "\nthresholds:\n  auto_confirm: 0.01\n",
    "a wrong type": "\nloop:\n  rotation: [1, [2]]\n",
    "a section that is a value": "\nloop: 5\n",
    "a value that is a list": "\nmcp:\n  allow_run:\n    - true\n",
    "no YAML": "\nloop: [\n",
    "no text": "\n\x00\n",
    "another document": "\n---\nfoo: 1\n",
}


def push(ws: Workspace, text: str) -> None:
    ws.put("config.yaml", text)
    ws.commit("config.yaml", message="config")


def mend(ws: Workspace, values: dict[str, str]) -> list[str]:
    """Say what each refusal names until the file is valid; the commands that it took."""
    said = []
    for _ in range(8):
        told = ws("config", "approve")
        if told.code != 4:
            return said
        command = next(part for part in told.err.replace(". ", "; ").split("; ") if "cleared config" in part)
        command = command.split("cleared ", 1)[1].rstrip(".\n")
        argv = subprocess.run(
            ["sh", "-c", f'for each in {command}; do echo "$each"; done'], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        said.append(command)
        ws.ok(*[values.get(argv[2], "?") if each == "VALUE" else each for each in argv])
    raise AssertionError(f"not mended: {said}")


@pytest.mark.parametrize("pushed", PUSHED.values(), ids=PUSHED)
def test_what_a_refusal_names_mends_the_file_and_brings_nothing_into_force(posted: Workspace, pushed: str) -> None:
    before, policy = posted.read("config.yaml"), posted.read(RECORD)
    push(posted, before + pushed)
    refused(posted("agent", "run", "ingest"), 4, "config.yaml:", "cleared config ")
    said = mend(posted, {"loop.log_dir": "control/loop"})
    assert said
    assert take_ok(posted, "config", "approve").code == 0
    after = posted.read("config.yaml")
    assert after.startswith(before.rstrip("\n")) and "0.01" not in after and "../x" not in after
    if "set" not in "".join(said):
        assert posted.read(RECORD) == policy
    posted.run("ingest")
    posted.in_order()


@pytest.mark.parametrize("pushed", PUSHED.values(), ids=PUSHED)
def test_what_only_reads_goes_by_the_approved_settings(posted: Workspace, tmp_path: Path, pushed: str) -> None:
    posted.ok("config", "set", "thresholds.auto_confirm", "0.9")
    push(posted, posted.read("config.yaml").replace("auto_confirm: 0.9", "auto_confirm: 0.3") + pushed)
    assert posted.ok("config", "get", "thresholds.auto_confirm").out == "0.9\n"
    done = posted.ok("check")
    assert "4 entries" in done.out and "config.yaml:" in done.err and "cleared config " in done.err
    assert posted("status").code == 0 and posted("trust").code == 0
    assert any("config.yaml" in line for line in posted.json("status")["trouble"])
    phrase = tmp_path / "phrase"
    phrase.write_text("correct horse battery staple")
    phrase.chmod(0o600)
    posted.ok("backup", str(tmp_path / "books.backup"), "--passphrase-file", str(phrase))
    assert any(line.startswith("fail  config") for line in posted("doctor").out.splitlines())


def test_without_it_nothing_but_the_editor_mends(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mend switched off: every command opens the workspace as if it were to run something."""
    real = workspace_opening.open_workspace

    def open_strictly(*args: object, **options: object) -> object:
        return real(*args, **{**options, "despite_fault": False})  # type: ignore[arg-type]

    push(posted, posted.read("config.yaml") + WRONG_FOLDER)
    monkeypatch.setattr(workspace_opening, "open_workspace", open_strictly)
    for argv in (
        ["config", "set", "loop.log_dir", "logs"],
        ["config", "unset", "loop"],
        ["trust"],
        ["check"],
    ):
        refused(posted(*argv), 4, "loop.log_dir")


def test_one_wrong_key_is_mended_beside_another_which_is_told(ws: Workspace) -> None:
    text = ws.read("config.yaml")
    push(ws, f"{text}{WRONG_FOLDER}foo: 1 # x\nbar: 2\n")
    done = ws.ok("config", "set", "loop.log_dir", "control/loop")
    lines = len(text.splitlines())
    assert ws.read("config.yaml") == f"{text}{WRONG_FOLDER}foo: 1 # x\nbar: 2\n".replace("../x", "control/loop")
    for named in (f"config.yaml:{lines + 4} (foo): unknown key", "not valid yet", "cleared config unset foo"):
        assert named in done.err, named
    assert ws("config", "get", "loop.log_dir").code == 1  # nobody approved it
    told = ws("config", "unset", "foo", "--json")
    assert told.code == 0 and "(bar)" in told.json["problems"][0] and "unset bar" in told.json["remedy"]
    assert not ws.ok("config", "unset", "bar").err.count("unknown key")
    assert ws.read("config.yaml") == f"{text}{WRONG_FOLDER}".replace("../x", "control/loop")
    assert ws.git("status", "--porcelain") == ""
    take_ok(ws, "config", "approve")
    assert ws.ok("config", "get", "loop.log_dir").out == "control/loop\n"


def test_a_wrong_value_is_not_mended_by_another_wrong_one(ws: Workspace) -> None:
    push(ws, ws.read("config.yaml") + WRONG_FOLDER + "foo: 1\n")
    before = ws.state()
    refused(ws("config", "set", "loop.log_dir", "/etc"), 4, "loop.log_dir")
    refused(ws("config", "set", "foo", "2"), 2, "no key")
    refused(ws("config", "set", "thresholds.auto_confirm", "0.9"), 4, "(foo)", "cleared config unset foo")
    refused(ws("config", "unset", "nothing.here"), 2, "does not stand in config.yaml")
    refused(ws("config", "approve"), 4, "(foo)", "cleared config unset foo")
    assert not ws.state().changed_since(before) and ws.state().head == before.head


def test_a_key_given_twice_is_mended_by_setting_it(ws: Workspace) -> None:
    text = ws.read("config.yaml")
    push(ws, text.replace("  auto_confirm: 0.95\n", "  auto_confirm: 0.95\n  auto_confirm: 0.01  # theirs\n"))
    done = ws.ok("config", "set", "thresholds.auto_confirm", "0.95")
    assert ws.read("config.yaml") == text and "not approved" not in done.err
    assert ws.ok("config", "get", "thresholds.auto_confirm").out == "0.95\n"


def test_what_was_approved_in_a_section_stays_in_force_when_its_pushed_copy_is_taken_out(ws: Workspace) -> None:
    ws.ok("config", "set", "loop.sleep_seconds", "7")
    text = ws.read("config.yaml")
    push(ws, text + "loop:\n  sleep_seconds: 1\n")
    ws.ok("config", "unset", "loop")
    assert ws.read("config.yaml") == text
    push(ws, text.replace("loop:\n  sleep_seconds: 7\n", "loop: 5\n"))
    assert "loop.sleep_seconds" in ws.ok("config", "unset", "loop").err
    assert ws.ok("config", "get", "loop.sleep_seconds").out == "7.0\n"


def test_a_rule_of_the_gate_that_is_wrong_can_be_taken_out_and_no_other_way_changed(ws: Workspace) -> None:
    text = ws.read("config.yaml")
    push(ws, text + "\ngate:\n  rules:\n    unreachable: maybe\n")
    ws.ok("config", "set", "gate.rules.unreachable", "off")
    assert ws.json("config", "get", "gate.rules") == {}
    assert "agent propose config.yaml" in take_shown(ws, "config", "approve").err
    assert ws.json("config", "get", "gate.rules") == {}
    push(ws, text + "\ngate:\n  rules:\n    unreachable: maybe\n")
    ws.ok("config", "unset", "gate.rules.unreachable")
    refused(ws("config", "unset", "gate.rules.unreachable"), 3, "by a proposal")


@pytest.mark.parametrize("damage", [b"\xff\xfe", b"a: [\n", b"- a\n"])
def test_a_file_that_is_none_is_replaced_by_the_newest_that_was_valid(ws: Workspace, damage: bytes) -> None:
    ws.ok("config", "set", "business.name", "Newest")
    good, head = ws.read("config.yaml"), ws.git("rev-parse", "HEAD").strip()
    (ws.root / "config.yaml").write_bytes(damage)
    ws.commit("config.yaml", message="config")
    refused(ws("config", "set", "business.name", "x"), 4, "config.yaml:", "cleared config restore")
    done = ws.ok("config", "restore", "--json")
    assert done.json["from"] == head and ws.read("config.yaml") == good and ws.git("status", "--porcelain") == ""
    assert (ws.root / done.json["kept"]).read_bytes() == damage
    refused(ws("config", "restore"), 2, "is valid")


def remove_file(path: Path) -> None:
    path.unlink()


def link_elsewhere(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def lay_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [link_elsewhere, lay_a_folder])
def test_each_command_that_finds_no_file_there_says_what_brings_it_back(
    posted: Workspace, damage: Callable[[Path], None]
) -> None:
    damage(posted.root / "config.yaml")
    kept = "Put the newest version of it that is valid in its place: cleared config restore."
    for argv in ("agent run ingest", "agent list", "config set business.name X", "config unset business.name"):
        refused(posted(*argv.split()), 4, "config.yaml: not a file but a", kept)
    posted.ok("config", "restore")
    posted.run("ingest")


@pytest.mark.parametrize("damage", [remove_file, link_elsewhere])
def test_a_file_that_was_taken_away_is_brought_back(posted: Workspace, damage: Callable[[Path], None]) -> None:
    text = posted.read("config.yaml")
    damage(posted.root / "config.yaml")
    posted.git("commit", "-qam", "config")
    assert "4 entries" in posted.ok("check").out
    refused(posted("agent", "run", "ingest"), 4, "config.yaml", "cleared config restore")
    posted.ok("config", "restore")
    assert posted.read("config.yaml") == text and not (posted.root / "config.yaml").is_symlink()
    posted.run("ingest")


def test_a_clone_that_nobody_trusts_is_mended_and_trusted_in_either_order(posted: Workspace, tmp_path: Path) -> None:
    push(posted, posted.read("config.yaml") + WRONG_FOLDER)
    for name in ("one", "two"):
        subprocess.run(
            ["git", "clone", "-q", f"file://{posted.root}", str(tmp_path / name)], check=True, env=environ | IDENTITY
        )
    one, two = Workspace(tmp_path / "one"), Workspace(tmp_path / "two")
    refused(one("check"), 4, "cleared config set loop.log_dir VALUE")
    assert "loop.log_dir is now control/loop" in one.ok("config", "set", "loop.log_dir", "control/loop").err
    take_ok(two, "trust", "--yes")
    two.ok("config", "unset", "loop.log_dir")
    two.run("ingest")
    take_ok(one, "trust", "--yes")
    assert "loop.log_dir" in take_ok(one, "config", "approve").out + one("config", "get", "loop.log_dir").err


def test_the_wrong_value_is_in_force_nowhere(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is right in a file that is not valid counts no more than in one that is."""
    push(posted, posted.read("config.yaml").replace("books: books", "books: ledger") + "foo: 1\n")
    assert "4 entries" in posted.ok("check").out
    monkeypatch.setattr(policy_in_force, "_read_approved", lambda approvals, wanted: (wanted, None))
    assert "4 entries" not in posted("check").out
