"""What a loop refuses: kinds that are none, what was altered on disk, forbidden files, a turn of an AI."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from harness import refused
from looping import Loop, eventually

SECRET = "sk-ant-abcdefghijklmnopqrstuvwxyz0123"
MARKER = "MARKER-5b1f-of-the-test"


def stops(loop: Loop) -> list[str]:
    return [stop["reason"] for stop in loop.state()["safety_stops"]]


# -- the whitelist ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["rm_everything", "git_status", "sh -c true", "../jobs", "", "GIT_STATUS_SUMMARY", "é"]
)
def test_e3_an_unknown_kind_is_refused_and_recorded(loop: Loop, kind: str) -> None:
    """E3"""
    refused(loop.here("enqueue", kind), 3, "is no job type that may be run")
    assert [stop["kind"] for stop in loop.state()["safety_stops"]] == [kind]
    assert loop.status()["stop"]["code"] == "safety_stop" and loop.status()["queued"] == []
    assert list((loop.folder / "jobs").iterdir()) == []
    loop.valid()


def test_e3_a_refused_job_does_not_keep_the_next_loop_from_starting(loop: Loop) -> None:
    """E3"""
    good = loop.enqueue("git_status_summary")
    refused(loop.here("enqueue", "rm_everything"), 3)
    loop.run("--once")
    assert loop.result(good)["status"] == "succeeded"
    assert loop.state()["stop"] is None and len(stops(loop)) == 1
    assert loop.tree()["summary"]["safety_stops"] == 1


def test_e3_a_refused_job_stops_a_running_loop_after_its_job(probed: Loop) -> None:
    """E3"""
    probed.enqueue("waits")
    later = probed.enqueue("counts")
    process = probed.start()
    eventually(probed.running)
    refused(probed("enqueue", "rm_everything"), 3)
    (probed.ws.root / "go").touch()
    code, said = probed.end(process, None)
    assert code == 3 and "'rm_everything' is no job type" in said
    assert probed.jobs() == ["waits"] and probed.results()[0]["status"] == "succeeded"
    assert probed.status()["status"] == "stopped"
    probed.run()
    assert probed.result(later)["status"] == "succeeded"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "counts"},
        {"target": "README.md"},
        {"by": "rotation"},
        {"seal": "0" * 64},
        {"kind": "no_such"},
        {"enqueued_at": "2020-01-01T00:00:00Z"},
        {"job_id": "job_20200101T000000Z_nothing"},
    ],
    ids=lambda c: next(iter(c)) + "=" + next(iter(c.values()))[:8],
)
@pytest.mark.parametrize("where", ["state", "inbox"])
def test_e3_a_queued_job_that_was_altered_never_runs(probed: Loop, where: str, change: dict[str, str]) -> None:
    """E3"""
    altered = probed.enqueue("nothing")
    rest = probed.enqueue("nothing")
    state = probed.folder / "single_agent_state.json"
    if where == "state":
        probed.edit(state, lambda data: data["queue"][0].update(change))
    else:
        item: dict[str, Any] = {}
        probed.edit(state, lambda data: item.update(data["queue"].pop(0)))
        message = {
            "schema_version": "single_agent_inbox_v1",
            "what": "job",
            "at": item["enqueued_at"],
            "job": item | change,
            "refused": None,
        }
        (probed.folder / "inbox/20200101T000000000000-000000-x.json").write_text(json.dumps(message))
        probed.edit(state, lambda data: data["queue"].clear())  # the other one is found by nobody now
        rest = probed.enqueue("nothing")
    done = probed.run("--max-cycles", "2", code=3)
    assert "its signature is wrong" in done.err
    assert not (probed.ws.root / "made/ran").exists()
    assert len(stops(probed)) == 1 and "signature" in stops(probed)[0]
    assert probed.state()["jobs"] == [] and probed.status()["stop"]["code"] == "safety_stop"
    assert not (probed.folder / f"jobs/{altered}.out.txt").exists()
    probed.run()
    assert [row["job_id"] for row in probed.state()["jobs"]] == [rest]


@pytest.mark.parametrize("where", ["state", "inbox"])
def test_e3_a_job_of_another_loop_never_runs_here(probed: Loop, where: str, tmp_path: Path) -> None:
    """E3, E32"""
    other = Loop(probed.ws, tmp_path / "other")
    other.enqueue("counts")
    probed.here("init")
    item = other.state()["queue"][0]
    if where == "state":
        probed.edit(probed.folder / "single_agent_state.json", lambda data: data["queue"].append(item))
    else:
        message = {
            "schema_version": "single_agent_inbox_v1",
            "what": "job",
            "at": item["enqueued_at"],
            "job": item,
            "refused": None,
        }
        (probed.folder / "inbox/a.json").write_text(json.dumps(message))
    probed.run(code=3)
    assert "signature" in stops(probed)[0] and not (probed.ws.root / "made/ran").exists()
    other.run()
    assert (probed.ws.root / "made/ran").read_text() == "x\n"


def test_e3_a_job_that_has_run_is_not_run_again_from_a_copy(probed: Loop) -> None:
    """E3"""
    probed.enqueue("counts")
    item = probed.state()["queue"][0]
    probed.run()
    probed.edit(probed.folder / "single_agent_state.json", lambda data: data["queue"].append(item))
    message = {
        "schema_version": "single_agent_inbox_v1",
        "what": "job",
        "at": item["enqueued_at"],
        "job": item,
        "refused": None,
    }
    (probed.folder / "inbox/a.json").write_text(json.dumps(message))
    probed("run", "--max-cycles", "3", "--sleep", "0")
    probed.run()
    assert (probed.ws.root / "made/ran").read_text() == "x\n"
    assert probed.jobs() == ["counts"]


def test_e3_a_kind_that_is_no_longer_named_never_runs(probed: Loop) -> None:
    """E3"""
    probed.enqueue("counts")
    probed.ws.config("loop.plugins=[]")
    probed.run(code=3)
    assert not (probed.ws.root / "made/ran").exists() and "is no job type" in stops(probed)[0]


@pytest.mark.parametrize(
    "what",
    [
        lambda path: path.write_bytes(b"{"),
        lambda path: path.write_bytes(b'{"schema_version": "single_agent_inbox_v1", "what": "job"}'),
        lambda path: path.write_bytes(b"[" * 100_000),
        lambda path: path.write_bytes(b" " * (9 << 20)),
        lambda path: path.write_bytes(b"\xff\xfe\x00"),
        lambda path: os.mkfifo(path),
        lambda path: path.symlink_to("/etc/passwd"),
        lambda path: path.symlink_to("nowhere"),
        lambda path: path.mkdir(),
        lambda path: (path.mkdir(), (path / "full").touch()),
    ],
    ids=["cut", "half", "deep", "huge", "binary", "pipe", "link", "broken link", "folder", "full folder"],
)
def test_what_is_no_message_is_recorded_and_the_loop_goes_on(loop: Loop, what: Any) -> None:
    """E3: it is looked at once, and the job behind it runs."""
    loop.here("init")
    what(loop.folder / "inbox/20200101T000000000000-000000-x.json")
    good = loop.enqueue("git_status_summary")
    assert len(stops(loop)) == 1 and "a message cannot be read" in stops(loop)[0]
    loop.run("--once")
    loop.run("--once")
    assert loop.result(good)["status"] == "succeeded"
    assert len(stops(loop)) == 1
    assert not list((loop.folder / "inbox").glob("*.json"))


def test_other_files_in_the_folders_are_left_alone(loop: Loop) -> None:
    loop.here("init")
    mine = [loop.folder / "inbox/notes.txt", loop.folder / "inbox/.hidden.json", loop.folder / "jobs/notes.txt"]
    for path in mine:
        path.write_text("mine")
    loop.once("git_status_summary")
    assert [path.read_text() for path in mine] == ["mine"] * 3 and stops(loop) == []


@pytest.mark.parametrize("name", ["out.txt", "result.json", "manifest.json"])
@pytest.mark.parametrize("to", ["there", "nowhere"])
def test_a_link_among_the_jobs_is_not_written_through(loop: Loop, name: str, to: str) -> None:
    job = loop.enqueue("git_status_summary")
    victim = loop.ws.root.parent / "victim"
    if to == "there":
        victim.write_text("precious")
    path = loop.folder / f"jobs/{job}.{name}"
    path.unlink(missing_ok=True)
    path.symlink_to(victim)
    loop("run", "--once", "--sleep", "0")
    loop("run", "--once", "--sleep", "0")
    assert (victim.read_text() if to == "there" else victim.exists()) == ("precious" if to == "there" else False)


# -- a turn of an AI --------------------------------------------------------------------------------------------------


def test_e16_the_bridge_is_disabled(loop: Loop) -> None:
    """E16"""
    result = loop.once("ai_single_turn_bridge", None, "--init")
    assert result["status"] == "failed" and result["exit_code"] == 1
    assert "the AI bridge is disabled: nothing was started" in result["summary"]
    assert not list((loop.folder / "jobs").glob("*bridge_*"))


def test_e16_a_dry_run_alone_does_not_enable_it(loop: Loop) -> None:
    """E16"""
    assert "disabled" in loop.once("ai_single_turn_bridge", SINGLE_AGENT_AI_DRY_RUN="1")["summary"]


def test_e17_a_dry_run_writes_what_it_would_ask_and_starts_nothing(loop: Loop, tmp_path: Path) -> None:
    """E17"""
    tools, called = tmp_path / "tools", tmp_path / "called"
    tools.mkdir()
    for name in ("claude", "codex"):
        (tools / name).write_text(f"#!/bin/sh\necho {name} >> {called}\n")
        (tools / name).chmod(0o755)
    scripts = loop.ws.root / "scripts"
    engine = scripts / "freedom_claude_loop_single_agent_v3.sh"
    scripts.mkdir(exist_ok=True)
    shutil.copy(tools / "claude", engine)
    result = loop.once(
        "ai_single_turn_bridge",
        None,
        "--init",
        SINGLE_AGENT_ALLOW_AI_TURN="1",
        SINGLE_AGENT_AI_DRY_RUN="1",
        PATH=f"{tools}:{os.environ['PATH']}",
    )
    assert result["status"] == "succeeded" and result["exit_code"] == 0 and "no engine was started" in result["summary"]
    manifest = json.loads((loop.folder / f"jobs/{result['job_id']}.bridge_manifest.json").read_text())
    assert manifest["mode"] == "dry_run" and manifest["engine_invoked"] is False
    prompt = loop.folder / f"jobs/{result['job_id']}.bridge_prompt.md"
    assert prompt.read_text().startswith("# One turn of work")
    assert (loop.ws.root / manifest["prompt_path"]) == prompt
    assert not called.exists()


@pytest.mark.parametrize("environment", [{}, {"SINGLE_AGENT_AI_DRY_RUN": "0"}])
def test_e18_a_live_turn_stays_blocked(loop: Loop, environment: dict[str, str | None]) -> None:
    """E18"""
    result = loop.once("ai_single_turn_bridge", SINGLE_AGENT_ALLOW_AI_TURN="1", **environment)
    assert result["status"] == "failed"
    assert "blocked: a live turn is not available, even where it is allowed" in result["summary"]


def test_e19_the_bridge_never_rotates(loop: Loop) -> None:
    """E19"""
    loop.run("--auto-rotate", "--max-cycles", "12", "--allow-ai-turn", "--ai-dry-run")
    jobs = [job["kind"] for job in loop.json("jobs", "--limit", "100")]
    assert len(jobs) == 12 and set(jobs) == {"continuity_scan", "akela_meta_summary", "git_status_summary"}
    assert loop.state()["rotation"]["turns"] == 12


def test_e19_nor_where_the_settings_name_it(loop: Loop) -> None:
    """E19"""
    loop.ws.config("loop.rotation=[git_status_summary, ai_single_turn_bridge]")
    done = loop("run", "--auto-rotate", "--max-cycles", "3", "--sleep", "0")
    assert done.code == 4 and "(loop.rotation): ai_single_turn_bridge does not rotate" in done.err, done


# -- forbidden files --------------------------------------------------------------------------------------------------


def forbid(loop: Loop) -> Path:
    """A workspace with things that no job may read."""
    root = loop.ws.root
    loop.ws.put(".env", f"KEY={MARKER}\n")
    loop.ws.put("secrets/keys.txt", MARKER)
    loop.ws.put("private/plan.md", MARKER)
    loop.ws.put("docs/note.md", "fine")
    loop.ws.put("docs/server.pem", MARKER)
    (root.parent / "outside").mkdir()
    (root.parent / "outside/note.md").write_text(MARKER)
    (root / "docs/link.md").symlink_to("../.env")
    (root / "docs/chain.md").symlink_to("link.md")
    (root / "docs/out").symlink_to("../../outside")
    (root / "docs/in").symlink_to("../secrets")
    os.link(root / ".env", root / "docs/hard.md")
    os.link(root / "secrets/keys.txt", root / "docs/hard2.md")
    return root


FORBIDDEN = [
    ".env",
    ".ENV",
    "./.env",
    "docs/../.env",
    "secrets",
    "secrets/keys.txt",
    "docs/link.md",
    "docs/chain.md",
    "docs/out",
    "docs/out/note.md",
    "docs/in",
    "docs/in/keys.txt",
    "docs/hard.md",
    "docs/hard2.md",
    "docs/server.pem",
    "../outside/note.md",
    "/etc/passwd",
    "~/.ssh/id_rsa",
    "private/plan.md",
    "",
    "docs\\note.md",
    "x" * 300,
]


@pytest.mark.parametrize("target", FORBIDDEN, ids=lambda t: t[:20] or "empty")
def test_e20_a_target_is_refused_by_what_it_leads_to(loop: Loop, target: str) -> None:
    """E20"""
    loop.ws.config("loop.forbidden_paths=[private/*]")
    forbid(loop)
    for kind in ("continuity_scan", "akela_meta_summary"):
        refused(loop.here("enqueue", kind, "--target", target), 3)
    assert len(stops(loop)) == 2 and loop.status()["queued"] == []
    loop.valid()


def test_e20_a_target_that_became_forbidden_meanwhile_is_not_read(loop: Loop) -> None:
    """E20"""
    root = forbid(loop)
    loop.enqueue("akela_meta_summary", "docs/note.md")
    (root / "docs/note.md").unlink()
    (root / "docs/note.md").symlink_to("../.env")
    loop.run(code=3)
    assert "forbidden" in stops(loop)[0] and loop.state()["jobs"] == []
    assert MARKER not in everything(loop)


@pytest.mark.parametrize("target", [".env", "docs/link.md", "docs/hard.md", "docs/out/note.md"])
def test_e20_a_report_named_in_the_settings_is_held_to_the_same(loop: Loop, target: str) -> None:
    """E20"""
    forbid(loop)
    loop.ws.config(f"loop.akela_report={target}")
    result = loop.once("akela_meta_summary")
    assert result["status"] == "failed" and "no job may read this" in result["summary"], result
    assert MARKER not in everything(loop)


def test_e20_a_scan_passes_over_what_is_forbidden(loop: Loop) -> None:
    """E20"""
    forbid(loop)
    loop.ws.config("loop.forbidden_paths=['*.sqlite', docs/drafts]")
    loop.ws.put("docs/drafts/idea.md", MARKER)
    loop.ws.put("docs/.env.json", MARKER)
    result = loop.once("continuity_scan", "docs")
    assert result["status"] == "succeeded", result
    listed = [line.split()[-1] for line in loop.output(result["job_id"]).splitlines() if line.startswith("20")]
    assert set(listed) - {"docs/hard.md", "docs/hard2.md"} == {"docs/note.md"}, "a hard link has a name of its own"


# -- what a job is given, and what is kept of what it says ------------------------------------------------------------


def everything(loop: Loop) -> str:
    """All that the loop has written."""
    return "\n".join(
        path.read_text(errors="replace") for path in loop.folder.rglob("*") if path.is_file() and path.stat().st_size
    )


def test_e21_no_env_file_is_read_and_nothing_is_inherited(probed: Loop) -> None:
    """E21"""
    for name in (".env", ".env.local", "home/.env"):
        probed.ws.put(name, f"export MARKED={MARKER}\nPATH=/evil\n")
    result = probed.once(
        "environ",
        None,
        MARKED=MARKER,
        AWS_SECRET_ACCESS_KEY=MARKER,
        LD_PRELOAD_X=MARKER,
        PYTHONSTARTUP="/x",
        GIT_DIR="/x",
        SSH_AUTH_SOCK="/x",
        BASH_ENV=str(probed.ws.root / ".env"),
        ENV=str(probed.ws.root / ".env"),
    )
    text = probed.output(result["job_id"])
    assert MARKER not in everything(probed)
    names = {line.split("=")[0] for line in text.splitlines()}
    assert names <= {
        "PATH",
        "HOME",
        "TMPDIR",
        "LANG",
        "LC_ALL",
        "TZ",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUNBUFFERED",
        "PYTHONSAFEPATH",
        "CLEARED_JOB",
        "CLEARED_JOB_FOLDER",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_OPTIONAL_LOCKS",
        "GIT_TERMINAL_PROMPT",
    }, names
    assert "/evil" not in text


BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC/+BKcwggSjAgEAAoIBAQC7"


def test_i1_secrets_that_a_job_prints_are_not_kept(probed: Loop) -> None:
    """I1"""
    known, shaped = "Zq8-not-like-any-key-77", "ghp_" + "a1B2" * 9
    pem = [
        "-----BEGIN RSA PRIVATE KEY-----",
        "MIIEowIBAAKCAQEA7bq",
        "abcdefghijklmnop",
        "-----END RSA PRIVATE KEY-----",
    ]
    lines = [
        f"first {SECRET} and {known}",
        f"token={shaped}",
        f"https://user:{known}@example.com/",
        *pem,
        "after the key",
        *(f"{part} then -----BEGIN X PRIVATE KEY" for part in ("", pem[3])),
        *[f"12:00 INFO {BODY}"] * 3,
        "shown all the same",
        pem[0],
        *["word"] * 300,
        f'{{"api_key": "{"q" * 24}"}}',
        "Authorization: Bearer abcdef0123456789abcdef",
        "x" * 70_000 + known,
        "plain",
    ]
    probed.ws.put("probe-paths", "\n".join(lines))
    result = probed.once("tells", None, MY_API_KEY=known, OTHER_TOKEN="")
    text = everything(probed)
    for secret in (SECRET, known, shaped, "q" * 24, "abcdef0123456789abcdef", *pem[1:3], BODY):
        assert secret not in text, secret
    assert result["status"] == "succeeded" and result["summary"].startswith("first [")
    kept = probed.output(result["job_id"]).splitlines()
    assert "after the key" in kept and "plain" in kept and "shown all the same" in kept
    assert 50 < kept.count("word") < 250, "a key is not as long"
    assert known not in probed.here("show", result["job_id"]).out


def test_what_a_job_prints_does_not_steer_a_terminal(probed: Loop) -> None:
    result = probed.once("steers")
    assert "red" in result["summary"]
    for argv in (["show", result["job_id"]], ["jobs"], ["tree"], ["status"], ["monitor"], ["tail"]):
        done = probed.here(*argv)
        assert done.code == 0 and not {"\x1b", "\x07"} & set(done.out), argv


def test_e20_a_report_of_git_is_whole_beside_forbidden_files(loop: Loop) -> None:
    """E20: what is forbidden is not read, and nothing else is missing."""
    forbid(loop)
    loop.ws.put("README.md", "changed")
    loop.ws.commit("README.md")
    loop.ws.put("README.md", "changed again")
    result = loop.once("git_status_summary")
    found = {line[3:] for line in loop.output(result["job_id"]).partition("\n\n")[0].splitlines()}
    told = {line[3:] for line in loop.ws.git("status", "--short").splitlines()}
    assert found == told and {"README.md", "docs/"} <= found
    assert result["summary"] == f"1 changed, {len(told) - 1} untracked" and MARKER not in everything(loop)
