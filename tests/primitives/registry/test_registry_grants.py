"""Grants: each declared once, and named by the primitives that need it."""

from __future__ import annotations

from cleared.primitives import primitive_registry
from cleared.primitives.registry.grants import load_grants
from cleared.primitives.script import script_run
from cleared.sandbox.used_primitives import ENQUEUE


def test_every_grant_is_declared_and_needed() -> None:
    assert {primitive.grant for primitive in primitive_registry().values()} == set(load_grants())


def test_a_grant_says_what_it_allows() -> None:
    for name, grant in load_grants().items():
        assert grant.name == name and grant.allows[0].islower() and not grant.allows.endswith(".")


def test_the_primitives_that_the_sandbox_names_exist() -> None:
    assert ENQUEUE in primitive_registry() and script_run.name == "script_run"
