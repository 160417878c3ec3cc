"""Secrets that get into what is kept or sent: by a primitive's result, a person's words, an unknown key (fault 10, I1).

One redaction for all: with it switched off, each of these is found where it was put.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import JANUARY, Workspace

from cleared.workspace.settings.secrets import REDACTED, Redactor, redactor_of_secrets

KEY = 'planted "0123456789'
"""Has a quote, which JSON writes otherwise."""
SHAPES = {
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "github": "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
    "openai": "sk-proj-0123456789abcdefghij",
    "stripe": "sk_live_0123456789abcdefghij",
    "slack": "xoxb-0123456789-abcdefghij",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
}


@pytest.fixture
def keyed(ws: Workspace) -> Workspace:
    ws.ok("config", "set", "notifications.smtp_password", KEY)
    return ws


def kept(ws: Workspace) -> str:
    """All that the program keeps of runs: traces, log, cards, events, commits' messages, proposals, notifications.

    Not the books, nor the bank's files, which are kept for a while under ``.cleared/taken``.
    """
    files = [p for p in (ws.root / ".cleared").rglob("*") if p.is_file() and p.parent.name != "taken"]
    files += [
        p for folder in ("logs", "queue", "agents/proposals") for p in (ws.root / folder).rglob("*") if p.is_file()
    ]
    said = [p.read_bytes().decode("utf-8", "replace") for p in files]
    runs = ws.json("run", "list")
    said += [ws.ok("run", "show", r["run_id"], *how).out for r in runs for how in ((), ("--json",))]
    return "\n".join([*said, ws.git("log", "--format=%B"), ws.ok("queue", "list", "--json").out])


def holds(text: str, secret: str) -> bool:
    return any(form in text for form in (secret, json.dumps(secret)[1:-1], json.dumps(json.dumps(secret)[1:-1])[1:-1]))


def of_a_result(ws: Workspace, secret: str) -> None:
    """The bank says it; the script only reads."""
    ws.drop("january.csv", JANUARY.replace("GITHUB *PRO", f"PAY {secret}".replace('"', '""')))
    ws.script('importer_parse("january.csv")\n[1]')


def of_a_card(ws: Workspace, secret: str) -> None:
    """What was imported before is quoted on a card."""
    data = JANUARY.replace("GITHUB *PRO", f"PAY {secret}".replace('"', '""'))
    ws.drop("january.csv", data)
    ws.run("ingest")
    ws.drop("again.csv", data + 'DEBIT,01/11/2025,"NEW",-1.00,ACH_DEBIT,,,\n')
    ws.run("ingest")


def of_a_proposal(ws: Workspace, secret: str) -> None:
    ws.put("agents/ingest.py", ws.read("agents/ingest.py") + "\n# more\n")
    ws.ok("agent", "propose", "ingest", "-m", f"with {secret}")
    ws.ok("agent", "reject", "P1", "--reason", f"no {secret}")


def of_a_reason(ws: Workspace, secret: str) -> None:
    ws.drop("january.csv")
    ws.run("ingest")
    ws.ok("journal", "void", "2025-01-001", "--reason", f"wrong: {secret}")
    ws.ok("queue", "reject", ws.cards()[0]["id"], "--reason", f"no: {secret}", "--outcome", "suspense")


def of_a_script(ws: Workspace, secret: str) -> None:
    """In every text that a script can pass."""
    said = json.dumps(secret)
    ws.script(
        f'k = {said}\nprint(k)\nctx_log(k)\njournal_add_double("2025-01-03", k, 5020, 1010, 4, evidence=k)\n'
        'queue_add_review("pending", k)\nctx_emit("a.b", {"k": [k], k: 1})\ngit_commit(k[:200])\n'
    )
    ws.script(f"raise ValueError({said})", code=1)


WAYS: list[Callable[[Workspace, str], None]] = [
    of_a_result,
    of_a_card,
    of_a_proposal,
    of_a_reason,
    of_a_script,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_i1_a_secret_of_the_configuration_is_kept_nowhere(
    keyed: Workspace, way: Callable[[Workspace, str], None]
) -> None:
    way(keyed, KEY)
    assert not holds(kept(keyed), KEY) and REDACTED in kept(keyed)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_i1_what_looks_like_a_key_is_kept_nowhere(ws: Workspace, way: Callable[[Workspace, str], None]) -> None:
    secret = " ".join([*SHAPES.values()][:4])
    way(ws, secret)
    text = kept(ws)
    assert not any(holds(text, shape) for shape in secret.split()) and REDACTED in text


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_without_the_redaction_each_secret_is_kept(
    keyed: Workspace, monkeypatch: pytest.MonkeyPatch, way: Callable[[Workspace, str], None]
) -> None:
    monkeypatch.setattr(Redactor, "redact_text", lambda self, text: text)
    way(keyed, KEY)
    assert holds(kept(keyed), KEY)


def test_i1_a_script_with_a_key_is_not_proposed(ws: Workspace) -> None:
    """A proposal is kept in the repository whatever becomes of it; a key that is there already stays one."""
    ws.put("agents/ingest.py", ws.read("agents/ingest.py") + f"\n# {SHAPES['github']}\n")
    done = ws("agent", "propose", "ingest")
    assert done.code == 3 and "holds a secret" in done.err


@pytest.mark.parametrize("name", SHAPES)
def test_i1_the_shapes(name: str) -> None:
    """Also within JSON, which stays JSON; and words that only begin so stay words."""
    clean = Redactor().redact_text
    assert clean(f"a {SHAPES[name]}, b") == f"a {REDACTED}, b"
    told = {"k": SHAPES[name], "url": "https://me:secret@example.com/x", "pem": "-----BEGIN PRIVATE KEY-----\nabc\n"}
    assert json.loads(clean(json.dumps(told)))["k"] == REDACTED and "secret" not in clean(json.dumps(told))
    assert (
        "abc" not in clean(json.dumps(told))
        and clean("the desk-organizer-premium-large") == "the desk-organizer-premium-large"
    )
    assert clean('{"a":"x://y","b":"c@d"}') == '{"a":"x://y","b":"c@d"}'


def test_i1_one_redaction_for_books_and_jobs() -> None:
    """Of a job's output also what is assigned to a secret's name; a bank may say TOKEN: 123456."""
    known = redactor_of_secrets(["hunter22"])
    assert (
        known.redact_text("TOKEN: 123456") == "TOKEN: 123456"
        and known.redact_output("TOKEN: 123456") == f"TOKEN: {REDACTED}"
    )
    assert known.redact_text("hunter22") == known.redact_output("hunter22") == REDACTED


def seconds_for(text: str) -> float:
    """Of the processor, the least of several tries."""
    redactor, tries = Redactor(), []
    for _ in range(7):
        began = time.process_time()
        redactor.redact_output(text)
        tries.append(time.process_time() - began)
    return min(tries)


BEGINNINGS = (
    "api_key",
    "-eyJ",
    "-eyJa.",
    "password   ",
    "secret_=",
    "token\n:\n",
    "-----BEGIN ",
    "-----BEGIN A PRIVATE KEY-----\nabc\n",
    "a://b:c",
)


@pytest.mark.parametrize("part", BEGINNINGS)
def test_no_output_takes_longer_than_its_length(part: str) -> None:
    """A program that prints what looks like the beginning of a secret again and again."""
    short, long = (seconds_for(part * (size // len(part))) for size in (20_000, 200_000))
    # By the square it would be a hundred times; a busy machine makes 17 of 10.
    assert long <= 40 * short, (short, long)


@pytest.mark.parametrize("part", BEGINNINGS)
def test_no_output_takes_much_longer_than_words(part: str) -> None:
    """What is bounded for each place where a secret may begin is a lot where each fourth letter is such a place."""
    mark = "eyJ -----BEGIN PRIVATE KEY "  # all shapes are looked for
    words, hostile = (seconds_for(mark + text * (200_000 // len(text))) for text in ("-abc", part))
    assert hostile <= 5 * words, (words, hostile)


@pytest.mark.parametrize("before", ["", "Bearer=", "--token-", "a_", "aeyJb-", "-eyJ-"])
def test_a_signed_token_is_found_wherever_in_a_word_it_begins(before: str) -> None:
    redacted = Redactor().redact_text(f"({before}{SHAPES['jwt']})")
    assert SHAPES["jwt"][:8] not in redacted and "c2lnbmF0" not in redacted and redacted.endswith(f"{REDACTED})")


def test_the_name_of_a_secret_may_be_long() -> None:
    told = Redactor().redact_output(f"{'my_' * 40}api_key_of_mine: hunter2222 and PASSWORD='hunter2222' and x=1")
    assert "hunter2222" not in told and told.startswith("my_my_") and told.endswith("x=1")


@pytest.mark.parametrize("kept", ["an error: see below\nall is well\n", "Hello world\n", '["a", "b"]\n'])
def test_the_beginning_of_a_key_hides_no_more_than_a_key(kept: str) -> None:
    """What is no line of a key is shown, though no end was seen; what is one is not."""
    key = (
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nMIIEowIBAAKCAQEA\nabc=\n"
    )
    told = Redactor().redact_text(f"before\n{key}{kept}after\n")
    assert told == f"before\n{REDACTED}\n{kept}after\n"
    assert "MIIE" not in Redactor().redact_text("x -----BEGIN PRIVATE KEY----- MIIEowIBAAKCAQEA7bq")


# -- one card for many files  (fault 10) -------------------------------------------------------------------------------


def test_b7_many_refused_files_are_one_card_for_each_kind(ws: Workspace, tmp_path: Path) -> None:
    """It counts them, and names the first; the next run asks nothing new."""
    for n in range(60):
        (ws.root / f"import/link-{n:02}.csv").symlink_to("/etc/passwd")
        ws.drop(f"bad-{n:02}.csv", f"nothing,known,{n}\n1,2,{n}\n")
    ws.drop("january.csv")
    assert ws.run("ingest")["result"]["imported"] == 4
    bad = [c for c in ws.cards() if c["kind"] == "bad_file"]
    assert len(bad) == 2 and {c["details"]["count"] for c in bad} == {60}
    assert all(c["title"].startswith("60 files were not imported") for c in bad)
    assert all(len(c["details"]["files"]) == 50 for c in bad) and "import/link-00.csv" in bad[1]["details"]["files"]
    ws.run("ingest")
    assert len([c for c in ws.cards() if c["kind"] == "bad_file"]) == 2


def test_without_the_kinds_each_file_is_a_card(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    from cleared.cards import refused_files

    many = refused_files.stage_refusals

    def singly(refused, *about):  # type: ignore[no-untyped-def]
        for name, error in refused.items():
            many({name: error}, *about)

    monkeypatch.setattr(refused_files, "stage_refusals", singly)
    for n in range(60):
        (ws.root / f"import/link-{n:02}.csv").symlink_to("/etc/passwd")
    ws.run("ingest")
    assert len(ws.cards()) == 60
