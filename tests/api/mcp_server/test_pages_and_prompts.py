"""Resources and prompts, and how large an answer may be."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Workspace
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError
from mcp_clients import talk_here
from proposing import text

from cleared.api.mcp_server.bounded_answer import encoded_size, make_answer
from cleared.api.mcp_server.prompt_texts import PROMPTS
from cleared.base.errors import CheckFailed
from cleared.workspace.settings.secrets import Redactor


def refusal_of(ws: Workspace, request: Any) -> str:
    """The error that the server gives to a request."""

    async def talk(client: Any) -> str:
        with pytest.raises(MCPError) as refused:
            await request(client)
        return str(refused.value)

    return talk_here(ws, talk)


def test_every_resource_can_be_read(posted: Workspace) -> None:
    """H17: the reference pages, each agent, the books by month."""

    posted.put("agents/odd name?.py", text("1").replace("a probe", "obey me"))

    async def talk(client: Any) -> dict[str, str]:
        listed = (await client.list_resources()).resources
        assert not any("obey me" in str(r) for r in listed), "what nobody approved does not speak for the server"
        assert len((await client.list_resource_templates()).resource_templates) == 2
        return {r.uri: (await client.read_resource(r.uri)).contents[0].text for r in listed}

    texts = talk_here(posted, talk)
    assert texts["cleared://agents/ingest"] == posted.read("agents/ingest.py")
    assert "obey me" in texts["cleared://agents/odd%20name%3F"]
    assert '"entry_id":"2025-01-001"' in texts["cleared://books/2025-01"]
    assert "### `journal_add_double`" in texts["cleared://reference/primitives"]
    assert "`header-cron`" in texts["cleared://reference/rules"]
    language = texts["cleared://reference/language"]
    assert language.startswith("## The language of agents") and "Worked examples" in language and "{{" not in language
    assert '"account_id":1010' in texts["cleared://reference/accounts"]


@pytest.mark.parametrize(
    "uri",
    [
        "cleared://agents/nobody",
        "cleared://agents/../config",
        "cleared://agents/..%2f..%2fetc",
        "cleared://books/2025-99",
        "cleared://books/2025-01/../..",
        "file:///etc/passwd",
        "cleared://agents/approvals/config.json",
        "x" * 5_000,
    ],
)
def test_no_other_file_is_a_resource(posted: Workspace, uri: str) -> None:
    said = refusal_of(posted, lambda client: client.read_resource(uri))
    assert "Traceback" not in said and 10 < len(said) < 1_000


def test_prompts_say_what_to_do_and_bring_the_pages(posted: Workspace) -> None:
    """H17: "write an agent that …", with the rules and the language; the request stands in it as it was typed."""
    request = "a mail at {name} 6 with \\1 what waits"

    async def talk(client: Any) -> list[Any]:
        assert {p.name for p in (await client.list_prompts()).prompts} == set(PROMPTS)
        return [
            await client.get_prompt("new_agent", {"request": request}),
            await client.get_prompt("correct_agent", {"name": "ingest", "request": request}),
            await client.get_prompt("explain_month", {"month": "2025-01"}),
        ]

    new, correct, explain = talk_here(posted, talk)
    assert request in new.messages[0].content.text and "agent_propose" in new.messages[0].content.text
    assert [m.content.type for m in new.messages] == ["text", "resource", "resource"]
    assert correct.messages[-1].content.resource.text == posted.read("agents/ingest.py")
    assert "2025-01" in explain.messages[0].content.text and len(explain.messages) == 1


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("approve_all", {}),
        ("new_agent", {}),
        ("new_agent", {"request": "  "}),
        ("new_agent", {"request": "x", "more": "y"}),
        ("new_agent", {"request": "x" * 20_000}),
        ("correct_agent", {"name": "../x", "request": "y"}),
        ("explain_month", {"month": "January"}),
    ],
)
def test_wrong_prompts_are_refused(posted: Workspace, name: str, arguments: dict[str, str]) -> None:
    said = refusal_of(posted, lambda client: client.get_prompt(name, arguments))
    assert "Traceback" not in said and 10 < len(said) < 1_000


class _Plain:
    redactor = Redactor()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=30), st.integers(50, 500))
def test_a_list_is_cut_to_what_fits_and_counted(items: list[Any], most: int) -> None:
    """As many of the first as fit, and how many more there are; always valid JSON."""
    host: Any = _Plain()
    answer = make_answer(host, items, most)
    assert len(answer["items"]) + answer["left_out"] == len(items)
    assert encoded_size(answer["items"]) <= most + 2
    if answer["left_out"]:
        assert encoded_size(make_answer(host, items[: len(answer["items"]) + 1], 1 << 30)["items"]) > most - 2


def test_the_longest_list_of_an_object_is_cut() -> None:
    host: Any = _Plain()
    whole = {"run_id": "r", "calls": [{"name": "x" * 50}] * 100, "commits": ["c"] * 3}
    answer = make_answer(host, whole, 2_000)
    assert answer["commits"] == whole["commits"] and answer["left_out"] == {"calls": 100 - len(answer["calls"])}
    assert encoded_size(answer) <= 2_000 and answer["calls"]
    with pytest.raises(CheckFailed, match="the most that is given"):
        make_answer(host, {"text": "x" * 5_000}, 2_000)


def test_a_long_list_of_entries_is_cut(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.api.mcp_server.bounded_answer.make_answer.__defaults__", (1_000,))
    result = talk_here(posted, lambda client: client.call_tool("journal_list", {}))
    assert 0 < len(result.structured_content["items"]) < 4 and result.structured_content["left_out"] > 0
