"""The generated page of claims: what docs/security.md claims, and the tests that hold it to that (docs/claims.yaml)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypedDict

import yaml

SOURCE: Final = Path(__file__).parent / "claims.yaml"


class Claim(TypedDict, total=False):
    """``tests``: that it holds; ``switched_off``: that it would not, with one wall away; ``both``: that do both."""

    claim: str
    tests: Sequence[str]
    both: Sequence[str]
    switched_off: Sequence[str]


def read_claims() -> Mapping[str, Sequence[Claim]]:
    """The claims by what they are about."""
    found: Mapping[str, Sequence[Claim]] = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    return found


def list_tests(claim: Claim) -> Iterator[str]:
    """All tests that a claim names, as pytest does."""
    for names in (claim.get("tests", ()), claim.get("both", ()), claim.get("switched_off", ())):
        yield from names


def claims(note: str) -> str:
    """Every claim with its tests."""
    out = [
        "# Claims and their tests",
        "",
        note,
        "",
        "What [the security model](../security.md) claims, and the tests that hold it to that. *Switched off* names",
        "the test in which the same attack goes through once that one wall is away, which shows that the first test",
        "can fail; *both* marks a test that does both itself.",
        "",
    ]
    for about, each in read_claims().items():
        out += [f"## {about}", "", "| claim | tests |", "|---|---|"]
        out += [f"| {claim['claim']} | {_name_tests(claim)} |" for claim in each]
        out.append("")
    return "\n".join(out).rstrip() + "\n"


def _name_tests(claim: Claim) -> str:
    names = [_link(name) for name in claim.get("tests", ())] + [
        f"{_link(name)} (both)" for name in claim.get("both", ())
    ]
    off = [_link(name) for name in claim.get("switched_off", ())]
    return ", ".join(names) + (f"; switched off: {', '.join(off)}" if off else "")


def _link(name: str) -> str:
    file, _, test = name.partition("::")
    return f"[`{test}`](../../{file})"
