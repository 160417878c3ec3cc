"""Every primitive, one module a domain. ``registry()`` is the only list of them there is."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from cleared.registry.primitive import Primitive, Registry


@cache
def primitive_registry() -> Registry:
    """All primitives. Raises ``DeclarationError`` where two share a name."""
    from cleared.primitives import (
        accounts,
        config,
        ctx,
        git,
        importer,
        journal,
        llm,
        loop,
        money,
        notify,
        queue,
        script,
        suggest,
        task,
    )

    return collect_primitives(
        importer, journal, money, accounts, git, queue, config, ctx, script, loop, notify, llm, task, suggest
    )  # fmt: skip


def collect_primitives(*modules: ModuleType) -> Registry:
    """The primitives declared in these modules, in the order of their declaration."""
    registry = Registry()
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Primitive):
                registry.add(value)
    return registry
