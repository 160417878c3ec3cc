"""The kinds of cards stand in one list; nothing else spells them, and every place that shows cards shows all."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import cleared
from cleared.cards.card import Card, card_id
from cleared.cards.kinds import INTRODUCTION, KINDS, CardKind, kind_named
from cleared.review.answers import answer_choices
from cleared.review.card_view import card_choices

ROOT = Path(cleared.__file__).parent
MAKERS = {"Card": 1, "card_id": 0, "card": 0, "_card": 1}
"""Functions that take a kind → at which place."""


def spelled(path: Path) -> list[str]:
    """Places of a module where a kind is a text of its own: compared with a ``kind``, or given to what makes cards."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        texts: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(isinstance(s, ast.Attribute) and s.attr == "kind" for s in sides) or any(
                isinstance(s, ast.Subscript) and isinstance(s.slice, ast.Constant) and s.slice.value == "kind"
                for s in sides
            ):
                texts = [each for s in sides for each in (s.elts if isinstance(s, ast.Tuple) else [s])]
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            at = MAKERS.get(name)
            if at is not None and len(node.args) > at:
                texts = [node.args[at]]
        found += [
            f"{path.name}:{t.lineno} {t.value}" for t in texts if isinstance(t, ast.Constant) and t.value in KINDS
        ]
    return found


def test_no_other_module_spells_a_kind() -> None:
    assert [place for path in sorted(ROOT.rglob("*.py")) for place in spelled(path)] == []


@pytest.mark.parametrize(
    "code",
    [
        'if card.kind == "entry": pass',
        'x = c["kind"] != "entry"',
        'card.kind in ("line", "entry")',
        'Card(i, "entry", "…", at)',
        'card_id("entry", "x")',
        'context.card("entry", ())',
        '_card(host, "entry", ())',
    ],
)
def test_a_spelled_kind_is_found(tmp_path: Path, code: str) -> None:
    module = tmp_path / "module.py"
    module.write_text(code)
    assert spelled(module)


def test_every_constant_is_listed() -> None:
    from cleared.books import card_kinds
    from cleared.cards import kinds
    from cleared.records.row_cards import list_card_kinds

    places = [*vars(kinds).items(), *vars(card_kinds).items()]
    constants = {name: kind for name, kind in places if isinstance(kind, CardKind)}
    assert {kind.name: kind for kind in (*constants.values(), *list_card_kinds())} == dict(KINDS)
    assert all(name == kind.name.upper() for name, kind in constants.items())


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_says_what_it_is_and_how_it_is_settled(kind: CardKind) -> None:
    assert kind.title and kind.meaning.endswith(".") and (not kind.settled_by or kind.settled_by.endswith("."))
    assert kind.label or kind.name == "entry"
    card = Card(card_id(kind.name, "x"), kind.name, "…", "2025-01-31T00:00:00Z", details={"choices": ["yes", "no"]})
    choices = card_choices(card)
    assert choices
    assert [c.value for c in choices if c.verb == "answer"] == list(answer_choices(card))
    assert {c.verb for c in choices} <= {"confirm", "correct", "reject", "answer", "approve", "decline", "retry"}


def test_a_kind_of_a_later_version_has_its_name_for_words() -> None:
    kind = kind_named("lost_receipt")
    assert (kind.title, kind.label, kind.answers) == ("Lost receipt", "lost receipt", {})


def test_the_reference_lists_every_kind() -> None:
    text = (ROOT.parent / "docs/reference/errors.md").read_text(encoding="utf-8")
    assert INTRODUCTION in text
    for kind in KINDS.values():
        assert f"| `{kind.name}` | {kind.meaning} |" in text
