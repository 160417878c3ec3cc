"""What a run asks a language model, and the answers that it is given: a run never waits for a model.

A script that asks what nobody has answered yet is told that there is no answer, and the request is noted. Whoever runs
the script gets the answers, and runs it again from its first line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

MODEL_ANSWER_EVENT: Final = "llm.answered"
"""An answer, as it stands among the events of the run that used it. Nothing else can emit it."""
NO_ANSWER: Final = "none"
"""The source of an answer that there is not."""
MAX_REQUESTS: Final = 200
"""Different requests of one run."""


class ModelRequest(Struct, frozen=True):
    """One question to a model. ``primitive``: llm_classify or llm_summarize."""

    primitive: str
    text: str
    instruction: str = ""
    choices: tuple[str, ...] = ()
    max_words: int = 0
    """0: no bound of its own."""

    @property
    def key(self) -> str:
        """Names the request by its content: the same one is asked once."""
        content = [self.primitive, self.text, self.instruction, list(self.choices), self.max_words]
        return hashlib.sha256(json.dumps(content, ensure_ascii=True).encode()).hexdigest()

    def fits(self, answer: Any) -> bool:
        """Whether this is an answer to the request; answers come from models, and out of files."""
        if not isinstance(answer, Mapping) or answer.get("source") not in ("model", "local", NO_ANSWER):
            return False
        if not isinstance(answer.get("reason"), str):
            return False
        if self.primitive == "llm_summarize":
            return answer.keys() == {"text", "source", "reason"} and isinstance(answer["text"], str | None)
        confidence = answer.get("confidence")
        return (
            answer.keys() == {"choice", "confidence", "source", "reason"}
            and (answer["choice"] is None or answer["choice"] in self.choices)
            and isinstance(confidence, int | float)
            and not isinstance(confidence, bool)
            and 0 <= confidence <= 1
        )

    def without_answer(self, reason: str) -> dict[str, Any]:
        """What a script gets where there is no answer, and why."""
        if self.primitive == "llm_summarize":
            return {"text": None, "source": NO_ANSWER, "reason": reason}
        return {"choice": None, "confidence": 0.0, "source": NO_ANSWER, "reason": reason}


class ModelAnswers(Struct):
    """The answers of one run: those it was given, those it used, and what it asked in vain."""

    known: Mapping[str, Mapping[str, Any]] = {}
    """Request's key → answer."""
    budgets: Mapping[str, Decimal] = {}
    """Primitive → US dollars that its requests may cost in a run; one that is not here may not be asked."""
    used: dict[str, Mapping[str, Any]] = {}
    missing: dict[str, ModelRequest] = {}

    def find_answer(self, request: ModelRequest) -> Mapping[str, Any]:
        """The answer, or that there is none; then the request is noted."""
        key = request.key
        answer = self.known.get(key)
        if answer is not None and request.fits(answer):
            self.used[key] = answer
            return answer
        self.missing[key] = request
        return request.without_answer("nobody has asked a model yet")

    @property
    def count(self) -> int:
        """How many different requests the run has made."""
        return len(self.used.keys() | self.missing.keys())


def recorded_answers(events: Iterable[Mapping[str, Any]], run: str | None = None) -> dict[str, Mapping[str, Any]]:
    """The answers among recorded events, newest first: key → answer; of several those of ``run``, else the newest."""
    found: dict[str, Mapping[str, Any]] = {}
    own: dict[str, Mapping[str, Any]] = {}
    for event in events:
        payload = event["payload"]
        if event["name"] != MODEL_ANSWER_EVENT or not isinstance(payload, Mapping):
            continue
        key, answer = payload.get("request"), payload.get("answer")
        if isinstance(key, str) and isinstance(answer, Mapping):
            (own if event.get("run") == run else found).setdefault(key, answer)
    return found | own
