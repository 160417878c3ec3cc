"""Every primitive that scripts may call: ``primitive_registry`` is the only list of them there is.

It imports ``cards``, ``jobs``, ``llm`` and below. Begin with ``registry.primitive`` and ``dispatch``.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from cleared.domains.installed_domains import cache_by_domains, load_domains
from cleared.primitives.registry.primitive import Primitive, Registry


@cache_by_domains
def primitive_registry() -> Registry:
    """All primitives: those of each domain, then the runtime's. Raises ``DeclarationError`` where two share a name."""
    from cleared.primitives import config, ctx, days, files, git, llm, loop, money, notify, queue, script, task

    names = [name for domain in load_domains() for name in domain.primitive_modules]
    own = (queue, money, days, git, config, ctx, files, script, loop, notify, llm, task)
    return collect_primitives(*map(import_module, names), *own)


def collect_primitives(*modules: ModuleType) -> Registry:
    """The primitives declared in these modules, in the order of their declaration."""
    registry = Registry()
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Primitive):
                registry.add(value)
    return registry
