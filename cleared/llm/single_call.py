"""One question and its answer, for what needs no session."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, Final, TypeVar

from cleared.base.errors import UsageError
from cleared.llm.model_door import ModelDoor

_T = TypeVar("_T")
_MOST_REQUESTS: Final = 3
"""One, and two more where the answer is not of the form that was asked for."""


def ask_once(
    door: ModelDoor,
    system: str,
    prompt: str,
    output_schema: Mapping[str, Any] | None = None,
    max_tokens: int | None = None,
) -> str | dict[str, Any]:
    """What the model answers: a text, or with ``output_schema`` (JSON Schema of an object) an object that fits it.

    ``max_tokens``: the longest answer; None: as ``llm.max_tokens`` has it. Raises ``SpendingStopped``, and
    ``ModelFailed`` for whatever a provider can do.
    """
    try:
        return run_coroutine(_ask(door, system, prompt, output_schema, max_tokens))
    except Exception as error:
        refusal = door.explain_failure(error)
        if refusal is None:
            raise
        raise refusal from None


def run_coroutine(work: Coroutine[Any, Any, _T]) -> _T:
    """The result of ``work``, also where this thread runs an event loop already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    results: list[_T] = []
    problems: list[BaseException] = []

    def run() -> None:
        try:
            results.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001  # raised again in the thread that waits
            problems.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if problems:
        raise problems[0]
    return results[0]


async def _ask(
    door: ModelDoor, system: str, prompt: str, output_schema: Mapping[str, Any] | None, max_tokens: int | None
) -> str | dict[str, Any]:
    from pydantic_ai import Agent, ModelRetry, StructuredDict
    from pydantic_ai.usage import UsageLimits

    settings = door.settings()
    if max_tokens is not None:
        settings["max_tokens"] = min(max_tokens, settings["max_tokens"])
    limits = UsageLimits(request_limit=_MOST_REQUESTS)
    if output_schema is None:
        plain = Agent(
            door.model, instructions=system, model_settings=settings, capabilities=door.capabilities(), retries=1
        )
        return (await plain.run(prompt, usage_limits=limits)).output
    check = _compile_schema(output_schema)
    agent = Agent(
        door.model,
        output_type=StructuredDict(dict(output_schema), name="answer"),
        instructions=system,
        model_settings=settings,
        capabilities=door.capabilities(),
        retries=1,
    )

    @agent.output_validator
    def validate(answer: dict[str, Any]) -> dict[str, Any]:
        problem = check(answer)
        if problem is not None:
            raise ModelRetry(f"The answer does not fit: {problem}")
        return answer

    return dict((await agent.run(prompt, usage_limits=limits)).output)


def _compile_schema(schema: Mapping[str, Any]) -> Any:
    import fastjsonschema

    try:
        validate = fastjsonschema.compile(dict(schema))
    except fastjsonschema.JsonSchemaException as error:
        raise UsageError(f"the form of the answer is no JSON Schema: {error}") from None

    def check(answer: object) -> str | None:
        try:
            validate(answer)
        except fastjsonschema.JsonSchemaValueException as error:
            return str(error.message)
        return None

    return check
