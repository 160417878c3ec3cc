"""Templates of agents: those that come with the program, and the workspace's own in ``templates/``."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from cleared.base.errors import Place, UsageError
from cleared.base.safe_files import write_atomic
from cleared.base.safe_names import require_plain_name
from cleared.changes.host import Host
from cleared.domains.installed_domains import parse_header
from cleared.workspace import template

_SHIPPED = Path(__file__).parent.parent.parent / "workspace" / "agent_templates"
_NAME = "{{name}}"


class Template(Struct, frozen=True):
    """``text`` has ``{{name}}`` where the agent's name goes."""

    text: str
    description: str


def load_templates(host: Host) -> dict[str, Template]:
    """Name → template; those of the workspace's ``templates/`` replace shipped ones of the same name."""
    templates: dict[str, Template] = {}
    for name, data in template.starter_files().items():
        if name.startswith("agents/"):
            text = data.decode("utf-8")
            templates[name.removeprefix("agents/").removesuffix(".py")] = Template(text, _description_in(text, name))
    for folder, suffix in ((_SHIPPED, ".py.txt"), (host.root / "templates", ".py")):
        for path in sorted(folder.glob(f"*{suffix}")) if folder.is_dir() else ():
            if path.is_file() and not path.is_symlink() and not path.name.startswith((".", "_")):
                text = path.read_text(encoding="utf-8", errors="replace")
                templates[path.name.removesuffix(suffix)] = Template(text, _description_in(text, path.name))
    return dict(sorted(templates.items()))


def _description_in(text: str, file: str) -> str:
    header, _ = parse_header(text.replace(_NAME, "template"), file)
    return header.description if header else ""


def create_agent(host: Host, name: str, template: str) -> str:
    """Write the working copy; its path. Raises ``UsageError`` for an unknown template, or where there is such an
    agent already."""
    path = host.layout.agent_path(require_plain_name(name, "agent"))
    templates = load_templates(host)
    if template not in templates:
        raise UsageError(f"there is no template {template!r}", remedy=f"Known: {', '.join(templates)}.")
    full = host.root / path
    if full.exists() or full.is_symlink():
        raise UsageError("there is such an agent already", place=Place(path), remedy="Choose another name.")
    write_atomic(full, templates[template].text.replace(_NAME, name).encode("utf-8"))
    return path
