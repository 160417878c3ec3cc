"""Fault 4: names that look like others, and characters that nobody sees. The gate refuses each, with its place; with
the one wall that is for it (``cleared.sandbox.unicode_lint``) switched off, each becomes a proposal that
may be approved."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from harness import Workspace, take_ok, unchanged
from proposing import edit, findings, propose, text
from world import World

from cleared.sandbox import unicode_lint
from cleared.sandbox.construct_lint import lint_script

ATTACKS = {
    "a primitive's name with a Cyrillic letter": (
        'def \u0430ccounts_list():\n    return ["mine"]\nctx_log(str(\u0430ccounts_list()))',
        "ascii-name",
        "6:5",
        "U+0430 (CYRILLIC SMALL LETTER A)",
    ),
    "the same inside an f-string": (
        'ctx_log(f"{[\u0440 for \u0440 in [1]]}")',
        "ascii-name",
        "6",
        "U+0440",
    ),
    "a filler for a name": ("\u3164 = 1\nctx_log(str(\u3164))", "invisible", "6:1", "U+3164 (HANGUL FILLER)"),
    "an argument and a keyword": (
        "def f(t\u043etal):\n    return 1\nf(t\u043etal=1)",
        "ascii-name",
        "6:7",
        "U+043E",
    ),
    "letters of full width, which are read as others": ("\uff46\uff4f\uff4f = 1", "ascii-name", "6:1", "U+FF46"),
    "the same inside an f-string, where only the parser reads them": (
        'def f():\n    total = 1\n    return total\nctx_log(f"{\uff46()}")',
        "ascii-name",
        "9",
        "other letters",
    ),
    "a tag in a string": ('ctx_log("GITHUB\U000e0041")', "invisible", "6:16", "\\U000e0041"),
    "a joiner in a string that is compared": ('ctx_log(str("a\u200db" == "ab"))', "invisible", "6:15", "\\u200d"),
    "a space that is another": ('ctx_log("A\u00a0B")', "invisible", "6:11", "NO-BREAK SPACE"),
    "a blank that counts as a letter, in a comment": ("x = 1  # \u2800 ctx_log(1)", "invisible", "6:10", "U+2800"),
}
HEADER = '"""\nname: Probe\ntrigger: on_demand\ndescription: harm\u200bless\n"""\n1\n'


@contextlib.contextmanager
def without_rules() -> Iterator[None]:
    """The program as it was before it had these rules."""
    lint_script.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unicode_lint, "find_invisible", lambda *_: iter(()))
        patch.setattr(unicode_lint, "find_strange_names", lambda *_: iter(()))
        patch.setattr(unicode_lint, "is_strange_name", lambda *_: False)
        yield
    lint_script.cache_clear()


@pytest.mark.parametrize("name", ATTACKS)
def test_a3_letters_that_deceive_are_found_at_their_place(name: str) -> None:
    """A3: rule, line, column, what it is; the escape that may stand for it."""
    body, rule, place, said = ATTACKS[name]
    found = [f for f in lint_script(text(body), "agents/probe.py") if f.rule == rule]
    assert found and str(found[0].place).startswith(f"agents/probe.py:{place}"), found
    assert said in f"{found[0].message} {found[0].remedy} {found[0].rule}"


def test_a3_what_is_written_as_an_escape_or_can_be_seen_passes() -> None:
    """A3: letters of all alphabets in strings and comments; a byte order mark before all."""
    body = 'x = "Zo\u00eb \u5bff \\u200d \\U000e0041"  # f\u00fcr Z\u00fcrich\nctx_log(f"{x} m\u00b2 {x:\u00b7>9}")'
    assert lint_script("\ufeff" + text(body), "agents/probe.py") == ()


def test_d1_the_gate_refuses_them_and_without_its_wall_would_not(ws: Workspace) -> None:
    """D1: nothing is proposed; no setting turns it off."""
    for number, (body, *_) in enumerate(ATTACKS.values()):
        ws.put(f"agents/probe{number}.py", text(body))
    ws.put("agents/header.py", HEADER)
    for number, (_, rule, _, _) in enumerate(ATTACKS.values()):
        if number in (0, 2, 6):
            with unchanged(ws):
                assert rule in findings(ws("agent", "propose", f"probe{number}", "--json"))
    with unchanged(ws):
        assert findings(ws("agent", "propose", "header", "--json")) == ["invisible"]
    with without_rules():
        for name in ("probe0", "probe2", "probe6", "header"):
            take_ok(ws, "agent", "approve", propose(ws, name)["id"])
            assert ws.run(name)["status"] == "succeeded"


def test_d17_what_was_approved_before_the_rules_came_runs_on_with_a_warning(ws: Workspace) -> None:
    """D17: an upgrade stops nobody's books: neither the agent, nor what triggers it, nor a change of what it uses."""
    path, shared = "agents/probe.py", "scripts/word.py"
    header = '"""\nname: Probe\ntrigger: event\nevent: ping\n"""\n'
    with without_rules():
        ws.put(shared, '"""\nname: word\n"""\n"caf\u00e9\u00a0"\n')
        ws.put(path, f'{header}\u0430 = script_run("word")\nctx_log(\u0430)\n')
        take_ok(ws, "agent", "approve", propose(ws, "probe")["id"])
    done = ws("agent", "run", "probe", "--json")
    assert done.code == 0 and done.json["status"] == "succeeded", done
    assert [w.split("]")[0].split("[")[1] for w in done.json["warnings"]] == ["ascii-name", "ascii-name", "invisible"]
    assert f"{path}:6:1: the name" in done.err and "stops a proposal" in done.err
    with World(ws) as world:
        ws.ok("event", "emit", "ping")
        world.settle()
        assert len(world.ran("probe")) == 1 and len(world.log("run.warning")) == 3
    assert ws("agent", "check", "probe").code == 0
    ws.put(shared, '"""\nname: word\n"""\n"caf\u00e9"\n')
    take_ok(ws, "agent", "approve", propose(ws, shared)["id"])
    ws.config("sandbox.timeout=20")
    assert ws.run("probe")["status"] == "succeeded"
    edit(ws, path, "name: Probe", "name: Other")
    with unchanged(ws):
        assert findings(ws("agent", "propose", "probe", "--json")) == ["ascii-name", "ascii-name"]


def test_no_first_line_of_a_commit_turns_or_hides_text(ws: Workspace) -> None:
    """Whoever gives the words: ``git log`` shows them as they stand there. The commit still counts."""
    take_ok(ws, "agent", "disable", "ingest", "--reason", "a \u202eb\u2066c\u200bd")
    assert ws.git("log", "-1", "--format=%s").strip() == "agent: ingest disabled: a \ufffdb\ufffdc\ufffdd"
    assert ws("check").code == 0
