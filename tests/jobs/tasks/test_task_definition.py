"""A task's definition, and what is wrong with one."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tasking import task

from cleared.jobs.tasks.schema_faults import list_faults, load_task_schema
from cleared.jobs.tasks.task_definition import Task, TaskRefused, check_task, parse_task
from cleared.jobs.tasks.task_graph import choose_next, find_cycle, list_graph_faults

SCHEMA = load_task_schema("task")


def refused_fields(value: Any) -> set[str]:
    with pytest.raises(TaskRefused) as caught:
        check_task(value, "docs/tasks/T-001.json")
    assert all(place.file == "docs/tasks/T-001.json" for place, _ in caught.value.faults)
    return {place.field or "" for place, _ in caught.value.faults}


@pytest.mark.parametrize("field", SCHEMA["required"])
def test_each_missing_field_is_named(field: str) -> None:
    """G1"""
    value = task(1)
    del value[field]
    assert refused_fields(value) == {field}


@pytest.mark.parametrize("field", ["files", "docs", "skills"])
def test_each_missing_field_of_the_context_is_named(field: str) -> None:
    """G1"""
    value = task(1)
    del value["context"][field]
    assert refused_fields(value) == {f"context.{field}"}


@pytest.mark.parametrize("field", SCHEMA["required"])
def test_each_mistyped_field_is_named(field: str) -> None:
    """G1"""
    assert refused_fields(task(1) | {field: 7}) == {field}


def test_all_faults_are_named_at_once() -> None:
    """G1"""
    value = task(1, title=None, files=[3], acceptance_criteria=[], extra=1)
    assert refused_fields(value) == {"title", "context.files[0]", "acceptance_criteria", "extra"}


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "a//b", "./a", ".git/config", ".cleared/lock", "a\\b", "~/x", "a\u202eb"]
)
def test_a_path_that_leads_elsewhere_is_refused(path: str) -> None:
    """G1"""
    assert refused_fields(task(1, files=[path])) == {"context.files[0]"}


@pytest.mark.parametrize("skill", ["../keys", "a/b", "", ".hidden"])
def test_a_skill_is_a_name(skill: str) -> None:
    """G1"""
    assert refused_fields(task(1, skills=[skill])) == {"context.skills[0]"}


def test_a_field_of_ten_megabytes_is_refused() -> None:
    """G1"""
    assert refused_fields(task(1, description="x" * (10 << 20))) == {"description"}


@pytest.mark.parametrize(
    "text", [b"", b"[", b"\xff", b'{"id": "T-001", "id": "T-002"}', b"[" * 100_000, b"null", b"[]"]
)
def test_what_is_no_task_is_refused(text: bytes) -> None:
    """G1"""
    with pytest.raises(TaskRefused):
        parse_task(text, "x.json")


def test_the_id_is_the_name_of_the_file() -> None:
    """G2"""
    with pytest.raises(TaskRefused) as caught:
        parse_task(json.dumps(task(1)).encode(), "docs/tasks/T-002.json", expected_id="T-002")
    assert caught.value.faults[0][0].field == "id"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*SCHEMA["required"], "files", "docs", "skills", "other"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from([*SCHEMA["required"], "other"]), JSON, max_size=3),
    st.sampled_from(SCHEMA["required"]),
)
@settings(max_examples=150)
def test_faults_are_those_of_the_shipped_schema(changes: dict[str, Any], dropped: str) -> None:
    """G1: our reader of the schema agrees with a complete one."""
    value = {**task(1), **changes}
    if len(changes) == 1:
        value.pop(dropped)
    valid = jsonschema.Draft7Validator(SCHEMA).is_valid(value)
    assert (not list(list_faults(SCHEMA, value))) == valid


def graph(**requires: list[str]) -> dict[str, Task]:
    return {
        name: check_task(task(1) | {"id": name, "requires": names}, "x")
        for name, names in ((n.replace("T", "T-"), r) for n, r in requires.items())
    }


def test_a_circle_is_reported_with_its_path() -> None:
    """G3"""
    found = dict(list_graph_faults(graph(T001=["T-003"], T002=["T-001"], T003=["T-002"])))
    assert list(found.values()) == ["the requirements lead in a circle: T-001 → T-003 → T-002 → T-001"]


def test_itself_and_unknown_tasks_are_reported() -> None:
    """G3"""
    found = [text for _, text in list_graph_faults(graph(T001=["T-001", "T-009"]))]
    assert found == ["it requires itself: T-001 → T-001", "it requires T-009, and there is no such task"]


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), max_size=14))
def test_a_graph_without_circle_can_be_worked_through(edges: list[tuple[int, int]]) -> None:
    """G3, G19: exactly where there is no circle, every task comes up in the end."""
    requires: dict[str, list[str]] = {f"T-{n:03d}": [] for n in range(1, 9)}
    for one, other in edges:
        if one != other and f"T-{other:03d}" not in requires[f"T-{one:03d}"]:
            requires[f"T-{one:03d}"].append(f"T-{other:03d}")
    tasks = graph(**{name.replace("-", ""): names for name, names in requires.items()})
    states = dict.fromkeys(tasks, "pending")
    while (following := choose_next(tasks, states)).task_id is not None:
        states[following.task_id] = "completed"
    assert (following.state == "done") == (not find_cycle(tasks))


def test_a_long_chain_is_no_problem() -> None:
    """G3"""
    tasks = graph(**{f"T{n:04d}": [f"T-{n - 1:04d}"] if n > 1 else [] for n in range(1, 3000)})
    assert find_cycle(tasks) == []
