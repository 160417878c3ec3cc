"""Scripts read files of the folders that their approved header watches, and no others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from harness import Workspace, fails

WATCHES = "grants: [file.read]\ntrigger: [on_demand, file_watch]\nwatch: [suppliers/*.csv, notes/]\n"
CSV = "sku;price\nA;4,20\nB;1\n"


def write_agent(ws: Workspace, body: str, header: str = WATCHES) -> None:
    ws.put("agents/probe.py", f'"""\nname: probe\n{header}"""\n{body}\n')
    ws.commit("agents/probe.py", *ws.approve("agents/probe.py"))


def refuses(ws: Workspace, body: str, *said: str, header: str = WATCHES) -> None:
    write_agent(ws, body, header)
    done = ws("agent", "run", "probe", "--json")
    assert done.code in (1, 3), done
    for text in said:
        assert text in done.json["error"]["message"], done.json["error"]


def test_watched_files_are_listed_and_read(ws: Workspace) -> None:
    ws.put("suppliers/acme.csv", "\ufeff" + CSV)
    ws.put("suppliers/readme.txt", "no")
    ws.put("suppliers/.hidden.csv", "no")
    ws.put("notes/deep/a.md", "hello\n")
    write_agent(ws, '[file_list(), file_read("notes/deep/a.md"), csv_rows("suppliers/acme.csv", ";")]')
    assert ws.run("probe")["result"] == [
        ["notes/deep/a.md", "suppliers/acme.csv"],
        "hello\n",
        [{"sku": "A", "price": "4,20"}, {"sku": "B", "price": "1"}],
    ]


@pytest.mark.parametrize(
    "path",
    [
        "config.yaml",
        "suppliers/readme.txt",
        "suppliers/../config.yaml",
        "./suppliers/acme.csv",
        "/etc/passwd",
        "suppliers/.hidden.csv",
        "notes/../.git/config",
        "suppliers/ACME.csv",
        "notes/out/secret.txt",
        "",
    ],
)
def test_nothing_else_is_read(ws: Workspace, tmp_path: Path, path: str) -> None:
    ws.put("suppliers/acme.csv", CSV)
    ws.put("suppliers/.hidden.csv", CSV)
    ws.put("suppliers/readme.txt", "no")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/secret.txt").write_text("secret")
    (ws.root / "notes").mkdir()
    os.symlink(tmp_path / "elsewhere", ws.root / "notes/out")
    os.symlink(ws.root / "config.yaml", ws.root / "suppliers/link.csv")
    refuses(ws, 'file_read("suppliers/link.csv")', "a symbolic link; not opened")
    refuses(ws, f"file_read({path!r})", "is no file that this agent watches")


def test_what_belongs_to_the_program_is_not_read_so(ws: Workspace) -> None:
    header = WATCHES.replace("notes/", "books/, logs/, queue/, agents/")
    write_agent(ws, "[path for path in file_list() if not path.startswith('agents/')]", header)
    ws.put("suppliers/acme.csv", CSV)
    assert ws.run("probe")["result"] == ["suppliers/acme.csv"]
    refuses(ws, 'file_read("logs/agent-log-2025-02.csv")', "no file that this agent watches", header=header)


SECRETS = ["config.yaml", "config.yaml.orig", "server.pem", "keys/id_ed25519.bak", "private/plan.txt", "linked.csv"]


def test_no_script_reads_settings_keys_or_what_is_no_input(ws: Workspace) -> None:
    """Not in a dry run of a draft either, which nobody has looked at: spelled apart, no redaction finds a secret."""
    ws.config("loop.forbidden_paths=[private/*]")
    for path in (*SECRETS[1:5], "agents/draft.py", "scripts/draft.py", "rules/draft.md", "tests/draft.txt"):
        ws.put(path, "hunter2secretpw")
    ws.put("notes/a.md", "hello")
    os.link(ws.root / "server.pem", ws.root / "linked.csv")
    header = f'"""\nname: probe\ngrants: [file.read]\ntrigger: file_watch\nwatch: [**, {", ".join(SECRETS)}]\n"""\n'
    ws.put("agents/probe.py", f"{header}file_list()\n")
    listed = ws.ok("agent", "run", "probe", "--dry-run", "--json").json["result"]
    assert "notes/a.md" in listed, "what a person put there is read"
    assert not [path for path in listed if path in SECRETS[:5] or "draft" in path or path.startswith("agents/")]
    for path in SECRETS:
        ws.put("agents/probe.py", f'{header}" ".join([x for x in file_read({path!r})])\n')
        done = ws("agent", "run", "probe", "--dry-run", "--json")
        assert done.code and ("no file that this agent watches" in done.out or "another name of a file" in done.out)
        assert "h u n t e r" not in done.out + done.err


def test_an_agent_that_watches_nothing_reads_nothing(ws: Workspace) -> None:
    ws.put("suppliers/acme.csv", CSV)
    fails(ws, 'file_read("suppliers/acme.csv")', "no file that this agent watches", header="grants: [file.read]\n")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a,b\n1,\xff\n", "acme.csv: byte 6 is not UTF-8"),
        (b"a,b\n1,2,3\n", "acme.csv:2: the row has 3 fields"),
        (b"a,a\n1,2\n", "does not name each column once"),
        (b"", "does not name each column once"),
        (b'a,b\n1,"2\n', "not readable as CSV"),
        (b"a,b\n1,\x00\n", "NUL"),
        (b'a,b\n1,"2"3\n', "not readable as CSV"),
    ],
)
def test_what_is_no_csv_is_refused_with_its_place(ws: Workspace, data: bytes, said: str) -> None:
    ws.put("suppliers/acme.csv", data)
    refuses(ws, 'csv_rows("suppliers/acme.csv")', said)


def test_a_file_that_is_too_large_is_refused(ws: Workspace) -> None:
    ws.config("import.max_bytes=1000")
    ws.put("suppliers/acme.csv", "a\n" + "1\n" * 600)
    refuses(ws, 'csv_rows("suppliers/acme.csv")', "at most 1,000 are read")


def test_a_file_is_read_once_in_a_run(ws: Workspace) -> None:
    """What was read first holds, whatever becomes of the file: seen in the log, which names its digest once."""
    ws.put("suppliers/acme.csv", CSV)
    write_agent(ws, 'file_read("suppliers/acme.csv") == file_read("suppliers/acme.csv")')
    assert ws.run("probe")["result"] is True
    ws.script("1", name="other")
    logs = [*(ws.root / ".cleared").glob("*log*"), *(ws.root / "logs").glob("agent-log*.csv")]
    log = "".join(path.read_text() for path in logs)
    assert log.count("file_read,suppliers/acme.csv sha256:") == 1
