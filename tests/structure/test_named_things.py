"""What docstrings name exists: a reader who looks for it finds it."""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import cleared
from cleared.workspace.settings.reference import list_settings

PACKAGE = Path(cleared.__file__).parent
ROOT = Path(__file__).parents[2]
MODULES = sorted(PACKAGE.rglob("*.py"))
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_NAMED = re.compile(r"``([A-Za-z_][\w.]*?)(?:\(\))?``")
_FILE = re.compile(r"\.(?:csv|db|json|jsonl|lock|log|md|py|txt|yaml)$")


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Docstrings, and the texts below fields and constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                value = statement.value if isinstance(statement, ast.Expr) else None
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield value


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def used_words() -> frozenset[str]:
    """Every identifier and word in a text of the code, without its docstrings."""
    words = set(dir(builtins))
    for path in MODULES:
        words |= set(path.relative_to(PACKAGE).with_suffix("").parts)
        lines = path.read_text(encoding="utf-8").splitlines()
        for text in docstrings(parsed(path)):
            for number in range(text.lineno - 1, text.end_lineno or text.lineno):
                lines[number] = ""
        words |= set(_IDENTIFIER.findall("\n".join(lines)))
    return frozenset(words)


@cache
def members() -> dict[str, set[str]]:
    """Class, module or package → the names in it; of several with one name all."""
    found: dict[str, set[str]] = defaultdict(set)
    bases: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        tree = parsed(path)
        stem = path.parent.name if path.name == "__init__.py" else path.stem
        found[path.parent.name].add(path.stem)
        found[path.parent.parent.name].add(path.parent.name)
        found[stem] |= {name for statement in tree.body for name in bound_names(statement)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name] |= {name for statement in node.body for name in bound_names(statement)}
                found[node.name] |= {a.attr for a in ast.walk(node) if isinstance(a, ast.Attribute)}
                bases[node.name] |= {ast.unparse(base).rpartition(".")[2].partition("[")[0] for base in node.bases}
    for _ in range(4):
        for name, above in bases.items():
            for base in above:
                found[name] |= found.get(base, set())
    return found


def bound_names(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign):
        yield from (n.id for target in statement.targets for n in ast.walk(target) if isinstance(n, ast.Name))
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in statement.names)
    elif isinstance(statement, ast.If | ast.Try):
        for inner in [*statement.body, *statement.orelse]:
            yield from bound_names(inner)


def is_there(name: str) -> bool:
    parts = name.split(".")
    if not set(parts) <= used_words():
        return False
    for owner, member in pairwise(parts):
        if owner[:1].isupper() and owner in members() and member not in members()[owner]:
            return False
    if len(parts) == 2 and parts[0] in ROOMS and not _FILE.search(name):
        return parts[1] in members()[parts[0]] or any(f"{key}.".startswith(f"{name}.") for key in SETTINGS)
    return True


ROOMS = frozenset(path.parent.name for path in PACKAGE.rglob("__init__.py")) - {"cleared"}
SETTINGS = frozenset(info.key.replace("[]", "") for info in list_settings())


def test_what_docstrings_name_exists() -> None:
    missing = [
        f"{path.relative_to(PACKAGE.parent)}:{text.lineno} says ``{name}``"
        for path in MODULES
        for text in docstrings(parsed(path))
        for name in _NAMED.findall(str(text.value))
        if not is_there(name)
    ]
    assert not missing, "\n".join(missing)


PAGES = [ROOT / "docs" / f"{name}.md" for name in ("design", "rooms", "extending", "decisions", "testing")]
_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_TICKED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:\(\))?")
_PLACE = re.compile(r"[a-z_]+(?:/[a-z_]+)+(?:/\*|/|\.py|\.[A-Za-z_]\w*)?")


@cache
def helper_words() -> frozenset[str]:
    """Every identifier of the tests, the benchmarks and the project's settings, and the names of their modules."""
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py"), ROOT / "pyproject.toml"]
    words = {part for file in files for part in file.with_suffix("").parts}
    return frozenset(words.union(*(_IDENTIFIER.findall(file.read_text(encoding="utf-8")) for file in files)))


def is_place(name: str) -> bool:
    """Whether a module or folder is there, below ``cleared/`` or in the checkout; or what a module has."""
    stem = name.removesuffix("/*").removesuffix("/")
    for base in (PACKAGE, ROOT):
        if (base / stem).exists() or (base / f"{stem}.py").exists():
            return True
        module, _, member = stem.rpartition(".")
        file = base / f"{module}.py"
        if module and file.exists() and member in _IDENTIFIER.findall(file.read_text(encoding="utf-8")):
            return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_pages_for_maintainers_name_exists(page: Path) -> None:
    names = _TICKED.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))
    files = {name for name in names if _FILE.search(name) and not name.endswith(".py")}
    files.add("tests/cases/")  # of a workspace, as the others are
    names = [name for name in names if name not in files]
    places = {
        name for name in names if _PLACE.fullmatch(name) and name.partition("/")[0] in ROOMS | {"cleared", "tests"}
    }
    dotted = {name.removesuffix("()") for name in names if _DOTTED.fullmatch(name) and ("_" in name or "." in name)}
    known = used_words() | helper_words()
    missing = [name for name in places if not is_place(name)]
    missing += [
        name for name in dotted if not is_there(name) and name not in SETTINGS and not known.issuperset(name.split("."))
    ]
    assert places and not missing, missing
