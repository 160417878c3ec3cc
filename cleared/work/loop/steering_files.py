"""Files that programs run, or take their instructions and settings from, by their paths. Whoever brings one has others'
programs do something: so none that a worker or an engine has changed comes in before a person said so.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

from cleared.base.safe_names import fold_path

_ENGINE_NAMES: Final = frozenset(
    {
        "agents.md",
        "agents.override.md",
        "claude.md",
        "claude.local.md",
        "qwen.md",
        "context.md",
        "opencode.json",
        "opencode.jsonc",
        ".mcp.json",
        ".env",
        "bunfig.toml",
    }
)
"""Files that engines take their instructions or settings from, wherever they lie. The last two are read where an engine
starts: they name its provider, to which its credential goes, or a program to run before it."""
_ENGINE_FOLDERS: Final = frozenset({".agents", ".claude", ".codex", ".opencode", ".qwen"})
"""Folders of whose files they do."""
_NAMES: Final = (
    *("makefile*", "gnumakefile", "justfile", "taskfile.y*ml", "rakefile", "gemfile*", "procfile", "jenkinsfile*"),
    *("dockerfile*", "containerfile*", "docker-compose*", "compose.y*ml", "vagrantfile", "brewfile", "cmakelists.txt"),
    *("package.json", "package-lock.json", "pnpm-*.yaml", "yarn.lock", "deno.json*", "*.config.js", "*.config.[cm]js"),
    *("*.config.ts", "pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "pytest.ini", "conftest.py", "noxfile.py"),
    *("sitecustomize.py", "usercustomize.py", "fabfile.py", "dodo.py", "sconstruct", "meson.build", "build.xml"),
    *("requirements*.txt", "pipfile*", "uv.toml", "uv.lock", "mise.toml", "cargo.toml", "build.rs", "pom.xml"),
    *("build.gradle*", "settings.gradle*", "gradle.properties", "gradlew*", "mvnw*", "lefthook.y*ml", "flake.nix"),
    *("default.nix", "shell.nix", "desktop.ini", "autorun.inf", "prompt.md", "consensus.md*"),
    *("*.sh", "*.bash", "*.zsh", "*.fish", "*.csh", "*.ksh", "*.mk", "*.mak", "*.ps1", "*.psm1", "*.bat", "*.cmd"),
    *("*.com", "*.exe", "*.msi", "*.scr", "*.vbs", "*.wsf", "*.lnk", "*.url", "*.command", "*.terminal", "*.scpt"),
    *("*.applescript", "*.workflow", "*.desktop", "*.service", "*.timer", "*.plist", "*.pth", "*.so", "*.dll"),
    *("*.dylib", "*.pyc", "*.jar", "*.code-workspace", "*.sublime-project", "*.iml"),
)
"""Names that tools run or are steered by, in lower case; so is whatever begins with a dot, or lies in such a folder."""


def is_read_by_engines(path: str) -> bool:
    """Whether engines take instructions or settings from what lies at this path, by its names."""
    *folders, name = fold_path(path).split("/")
    is_named = name in _ENGINE_NAMES or name.startswith(".env.") or not _ENGINE_FOLDERS.isdisjoint(folders)
    return is_named or folders[:1] in (["rules"], ["templates"])


def steers_programs(path: str) -> bool:
    """Whether some program runs what lies at this path, or is steered by it, though nobody names it to that program."""
    parts = fold_path(path).split("/")
    is_hidden = any(part.startswith(".") for part in parts)
    return is_hidden or is_read_by_engines(path) or any(fnmatchcase(parts[-1], name) for name in _NAMES)
