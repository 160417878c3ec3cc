"""``llm_*``: asking a language model. It suggests; it cannot post, and a script goes on where it does not answer."""

from __future__ import annotations

from typing import Any, Final

from cleared.base.errors import Place, PolicyError, PrimitiveError
from cleared.primitives.context import Context
from cleared.primitives.model_requests import MAX_REQUESTS, NO_ANSWER, ModelRequest
from cleared.primitives.registry.dict_shapes import Classification, Summary
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Line, Text, Whole

MAX_CHOICES: Final = 500
MAX_WORDS: Final = 1_000


@primitive(effect=Effect.OUTBOX, grant="llm.classify")
def llm_classify(ctx: Context, text: Text, choices: list[Line], instruction: Text | None = None) -> Classification:
    """Ask a language model which of ``choices`` fits ``text``: 2 to 500, none twice.

    ``choice`` is one of them, or None where there is no answer; ``confidence`` is the model's own word, 0 to 1;
    ``source`` is ``model``, ``local`` or ``none``, and ``reason`` says why there is none (an outage, a budget). The run
    goes on then: ask a person with queue_add_review. Granted with its budget in dollars a run: ``llm.classify:0.05``. A
    dry run asks no model: it has the answers that earlier runs were given.
    """
    if not 2 <= len(choices) <= MAX_CHOICES or len(set(choices)) < len(choices) or not all(c.strip() for c in choices):
        raise PrimitiveError(
            f"a text is classified by 2 to {MAX_CHOICES} choices, none empty, none twice",
            place=Place(field="choices"),
            remedy='Such as ["travel", "office", "other"].',
        )
    answer = _ask(ctx, ModelRequest("llm_classify", text, instruction or "", tuple(choices)))
    found: Classification = {
        "choice": answer["choice"],
        "confidence": float(answer["confidence"]),
        "source": answer["source"],
        "reason": answer["reason"],
    }
    shown = f"{found['choice']} ({found['confidence']:g})" if found["source"] != NO_ANSWER else found["reason"]
    ctx.log_action("llm_classify", f"{shown}: {text}"[:500])
    return found


@primitive(effect=Effect.OUTBOX, grant="llm.summarize")
def llm_summarize(ctx: Context, text: Text, instruction: Text | None = None, max_words: Whole | None = None) -> Summary:
    """Ask a language model to say in short what ``text`` says, in at most ``max_words`` (1 to 1,000) words.

    ``text`` is None where there is no answer; ``source`` and ``reason`` as for llm_classify. Granted with its budget in
    dollars a run: ``llm.summarize:0.05``.
    """
    if max_words is not None and not 1 <= max_words <= MAX_WORDS:
        raise PrimitiveError(
            f"max_words is {max_words}", place=Place(field="max_words"), remedy=f"Use 1 to {MAX_WORDS}."
        )
    answer = _ask(ctx, ModelRequest("llm_summarize", text, instruction or "", max_words=max_words or 0))
    found: Summary = {"text": answer["text"], "source": answer["source"], "reason": answer["reason"]}
    ctx.log_action("llm_summarize", (found["text"] or found["reason"])[:500])
    return found


def _ask(ctx: Context, request: ModelRequest) -> Any:
    """The answer, or that there is none. Raises ``PolicyError`` without a budget, ``PrimitiveError`` for too much."""
    answers = ctx.model_answers
    if request.primitive not in answers.budgets:
        grant = request.primitive.replace("_", ".", 1)
        raise PolicyError(
            f"{request.primitive} has no budget: the header does not say what it may cost",
            place=Place(field="grants"),
            remedy=f"Add {grant}:0.05 (US dollars a run) to the grants: line of the agent's header, and have the "
            "change approved.",
        )
    if answers.count >= MAX_REQUESTS and request.key not in answers.used and request.key not in answers.missing:
        answers.missing.clear()  # the run fails: nobody needs to be asked
        raise PrimitiveError(
            f"the run asks a model more than {MAX_REQUESTS} different things",
            remedy="Ask about fewer texts in a run, or about several in one text.",
        )
    return answers.find_answer(request)
