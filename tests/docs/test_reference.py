"""The reference pages say what the code says, and leave nothing out."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cleared.sandbox import construct_lint, header, header_values, script_source, unicode_lint  # noqa: E402
from docs import generate  # noqa: E402


@pytest.mark.parametrize(
    "name",
    ["cli.md", "primitives.md", "config.md", "errors.md", "rules.md", "jobs.md", "session-events.md", "state.md"],
)
def test_page_is_what_the_code_says(name: str) -> None:
    found = (generate.FOLDER / name).read_text(encoding="utf-8")
    assert found == generate.pages()[name], f"docs/reference/{name} is stale: python -m docs.generate"


def test_every_page_is_generated() -> None:
    assert {p.name for p in generate.FOLDER.glob("*.md")} == set(generate.pages())


def test_keys_that_need_no_approval_are_marked() -> None:
    from cleared.workspace.settings.protected_settings import is_protected

    rows = re.findall(r"^\| `([^`]+)` \|.*\| (.*) \|$", generate.config(), re.MULTILINE)
    at_once = {key for key, _ in rows if not is_protected(key)}
    assert at_once == {key for key, text in rows if text.startswith("**at once**")}
    assert "review.remind_after" in at_once and not {"thresholds.auto_confirm", "gate.rules", "paths.books"} & at_once


def test_every_rule_for_scripts_is_shown() -> None:
    text = "".join(map(inspect.getsource, (unicode_lint, construct_lint, script_source)))
    literal = set(re.findall(r'(?:yield|Finding\()\s*"([a-z-]+)"', text))
    assert literal >= {"dunder", "type-ignore", "syntax"}
    assert literal | {rule for rule, _, _ in construct_lint._CONSTRUCTS.values()} == set(generate.SAMPLES)


def test_every_rule_for_headers_is_shown() -> None:
    literal = set(re.findall(r'"(header-[a-z]+)"', inspect.getsource(header)))
    literal |= {f"header-{rule}" for rule in re.findall(r'Bad\("([a-z]+)"', inspect.getsource(header_values))}
    assert literal == set(generate.HEADER_SAMPLES)


def test_every_primitive_and_command_is_on_its_page() -> None:
    from cleared.primitives import primitive_registry

    for name in primitive_registry():
        assert f"### `{name}`" in generate.primitives()
    assert "## cleared agent run" in generate.cli()


def test_every_kind_of_job_and_every_field_of_a_loops_files_is_on_its_page() -> None:
    from cleared.jobs import file_schemas
    from cleared.jobs.job_types import load_built_in

    page = generate.jobs()
    for kind in load_built_in().values():
        assert f"| `{kind.name}` | {kind.about} |" in page
    for name in ("result", "tree", "state", "manifest"):
        for field in file_schemas.load_schema(name)["required"]:  # type: ignore[arg-type]
            assert f"| `{field}` |" in page
