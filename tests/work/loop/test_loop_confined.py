"""What holds a job that does not ask: no key, no secret, no history, no network, no decision."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from looping import Loop, changed, eventually
from running import has_ended

from cleared.processes.confinement import landlock_abi

pytestmark = [
    pytest.mark.skipif(not landlock_abi(), reason="this kernel has nothing to hold a job with"),
    pytest.mark.slow,
]
MARKER = "MARKER-9c2e-of-the-test"


def attempts(loop: Loop, kind: str, *lines: object, **environment: str) -> dict[str, str]:
    """What became of each line, which the job tries one after the other."""
    loop.ws.put("probe-paths", "\n".join(map(str, lines)))
    result = loop.once(kind, None, **environment)
    assert result["status"] == "succeeded", (result, loop.output(result["job_id"]))
    found = [line.partition(" ") for line in loop.output(result["job_id"]).splitlines() if " " in line]
    return {name: rest for name, _, rest in found}


def test_a_job_reads_neither_keys_nor_what_is_forbidden(probed: Loop) -> None:
    """E20, I1: as a program reads that asks nobody."""
    root, home = probed.ws.root, Path(os.environ["HOME"])
    probed.ws.put(".env", MARKER)
    probed.ws.put("secrets/keys.txt", MARKER)
    probed.ws.put("docs/note.md", "fine")
    outside = root.parent / "outside.txt"
    outside.write_text(MARKER)
    (home / ".netrc").write_text(MARKER)
    (root / "docs/out").symlink_to(root.parent)
    (root / "docs/in").symlink_to("../secrets")
    (root / "link.md").symlink_to(".env")
    os.link(root / ".env", root / "hard.md")
    keys = list((home / "cleared").rglob("*key"))
    assert {key.name for key in keys} == {"approval-key", "index-key", "loop-key", "run-key"} or len(keys) < 4, keys
    seen = list((home / "cleared").rglob("seen.json"))
    assert seen, "what this machine saw last of the books"
    bad = [
        *seen,
        ".env",
        "./docs/../.env",
        root / ".env",
        "secrets/keys.txt",
        "docs/in/keys.txt",
        "docs/out/outside.txt",
        "link.md",
        "hard.md",
        outside,
        home / ".netrc",
        f"/proc/self/root{outside}",
        f"/proc/{os.getpid()}/environ",
        f"/proc/{os.getpid()}/root{outside}",
        f"/proc/{os.getpid()}/cwd",
        "/proc/1/environ",
        *keys,
    ]
    found = attempts(probed, "reads", *bad, "docs/note.md", "probe-paths", ".git/HEAD")
    for path in bad:
        assert found[str(path)].startswith("refused"), (path, found[str(path)])
    assert found["docs/note.md"] == "got b'fine'"
    assert found[".git/HEAD"].startswith("got b'ref:") and found["probe-paths"].startswith("got")


def test_a_job_sees_no_other_process_from_inside(probed: Loop) -> None:
    """Neither the environment nor the files of the loop, of its watcher, or of a stranger."""
    sleeper = subprocess.Popen(["sleep", "60"], env={"MARKED": MARKER})
    try:
        pids = [sleeper.pid, os.getpid(), os.getppid()]
        found = attempts(probed, "reads", *[f"/proc/{pid}/environ" for pid in pids])
        assert all(said.startswith("refused") for said in found.values()), found
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_job_reads_only_the_folders_of_its_kind(probed: Loop) -> None:
    probed.ws.put("docs/note.md", "fine")
    probed.ws.put("notes.md", MARKER)
    assert probed.once("docs")["summary"] == "fine"
    result = probed.once("says", "notes.md")
    assert result["summary"] == MARKER, "its target is among what it may read"


def test_a_job_writes_only_where_its_kind_says(probed: Loop) -> None:
    root = probed.ws.root
    names = [
        ".git/HEAD",
        ".git/config",
        ".git/new",
        "config.yaml",
        "agents/x.py",
        "x.txt",
        "probe-paths",
        ".cleared/loop/single_agent_state.json",
        ".cleared/loop/inbox/x.json",
        ".cleared/loop/jobs/x.result.json",
        ".cleared/x",
        "made/../x.txt",
        "/tmp/x-of-a-job",
        root.parent / "x.txt",
        Path(os.environ["HOME"]) / "x",
    ]
    (root / "made/up").symlink_to("..")
    found = attempts(probed, "writes", *names, "made/fine", "made/up/x.txt", "/dev/null")
    assert {name for name, said in found.items() if said.startswith("got")} == {"made/fine", "/dev/null", "scratch"}
    assert not (probed.folder / "tmp").exists() or not list((probed.folder / "tmp").iterdir())
    assert probed.ws.git("status", "--porcelain", "--", ".", ":!made", ":!probe-paths") == ""


def test_a_job_opens_no_network_and_no_socket_of_another_program(probed: Loop) -> None:
    """Not even one in the file system: whoever listens there is not confined."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = attempts(probed, "dials", server.getsockname()[1])
    assert len(found) >= 6
    for name, said in found.items():
        assert "got" not in said, (name, said)


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_a_job_cannot_have_tmux_run_something_outside(probed: Loop, tmp_path: Path) -> None:
    """A way out that needs no network: a server of the same user that runs what it is told."""
    environment = changed({"TMUX": None, "TMUX_TMPDIR": None})
    there = probed.ws.root / "made/tmux.socket"
    subprocess.run(["tmux", "-S", there, "new-session", "-d", "-s", "outer"], check=True, env=environment)
    try:
        made = tmp_path / "escaped"
        probed.ws.put("docs/note.md", f"tmux -S {there} run-shell 'touch {made}'")
        result = probed.once("runs", "docs/note.md")
        assert result["status"] == "failed" and not made.exists(), result
    finally:
        subprocess.run(["tmux", "-S", there, "kill-server"], check=False, env=environment)


def test_a_job_decides_nothing(probed: Loop) -> None:
    """B17's half: neither as itself, nor with its environment and session left behind."""
    ws = probed.ws
    ws.put("agents/new.py", '"""\nname: new\ntrigger: on_demand\n"""\n1\n')
    made = ws("agent", "propose", "new", "--json").json
    head, root = ws.head(), f"-C {ws.root}"
    commands = [
        f"agent approve {made['id']} {root}",
        f"queue approve 2025-01-001 {root}",
        f"config approve {root}",
        f"config set loop.max_failures 9 {root}",
        f"trust --yes {root}",
        f"agent rollback ingest {root}",
        f"import new {root}",
    ]
    ws.put("probe-paths", "\n".join(commands))
    result = probed.once("decides")
    said = probed.output(result["job_id"]).splitlines()
    tried = [line for line in said if " | " in line]
    assert len(tried) == 2 * len(commands), said
    assert not [line for line in tried if line.split("| ")[1].split()[1] == "0"], tried
    plain = [line for line in tried if "| plain" in line and "approve" in line]
    assert len(plain) == 3 and all("not for a job to make" in line for line in plain), plain
    assert ws.head() == head and not list((ws.root / "approvals").rglob("*new*"))


def test_a_plug_in_may_not_ask_for_what_would_free_it(probed: Loop) -> None:
    """Its kind may not write the history, the agents or the loop's own files."""
    from looping import plug_in

    folder = Path(sys.path[0])
    for number, path in enumerate(
        [".", "/", "", ".git", ".git/hooks", "agents", "./.git", "../x", ".cleared/loop", ".cleared", "x/../.git"]
    ):
        text = (
            "from cleared.jobs.job_types import JobType\n"
            f"free{number} = JobType('free{number}', '', command=('true',), writes=({path!r},))\n"
        )
        plug_in(folder, f"free_kinds{number}", text, [f"free{number}"])
        probed.ws.config(f"loop.plugins=[free{number}]")
        done = probed.ws("loop", "job-types")
        assert done.code == 4 and "it may not write" in done.err, (path, done)


def test_a_job_may_not_write_the_loops_files_wherever_they_are(probed: Loop) -> None:
    inner = Loop(probed.ws, probed.ws.root / "made/loop")
    result = inner.once("counts")
    assert result["status"] == "failed" and "the loop's own files" in result["summary"], result


def test_what_must_be_confined_and_cannot_is_not_run(probed: Loop) -> None:
    """``sandbox.confine: require``: with the keys among the programs nothing would hold."""
    probed.ws.config("sandbox.confine=require")
    assert probed.once("counts")["status"] == "succeeded"
    inside = str(probed.ws.root / "inner-home")
    done = probed("run", "--once", "--enqueue", "counts", "--sleep", "0", CLEARED_HOME=inside)
    assert done.code != 0 or probed.results()[-1]["status"] == "failed"
    assert (probed.ws.root / "made/ran").read_text() == "x\n"


def test_jobs_have_no_input_and_their_own_place(probed: Loop) -> None:
    assert probed.once("input")["summary"] == "empty"
    assert probed.once("where")["summary"] == str(probed.ws.root)


def test_what_a_job_leaves_behind_is_ended(probed: Loop) -> None:
    """Also what has left its session, ignores TERM and has an empty environment."""
    result = probed.once("strays")
    assert result["status"] == "succeeded" and result["summary"] == "two are left", result
    for name in ("loose", "holds"):
        eventually(lambda name=name: has_ended(probed.ws.root / "made" / name))
