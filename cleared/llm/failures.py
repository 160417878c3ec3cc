"""What can go wrong with a call to a model, in words with a remedy. Imports pydantic-ai where it is used."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Final, Literal

from cleared.base.errors import CheckFailed, ClearedError
from cleared.llm.api_keys import ModelChoice
from cleared.workspace.settings.secrets import Redactor

Kind = Literal[
    "authentication",
    "not_found",
    "rate_limit",
    "quota",
    "context_length",
    "unavailable",
    "timeout",
    "connection",
    "tls",
    "unreadable",
    "garbage",
    "no_answer",
    "rejected",
    "wrong_setting",
]
_MOST_QUOTED: Final = 300
"""Characters of a provider's own words that are shown."""


class UnreadableReply(Exception):
    """An answer that is not read: it is too long, compressed, or leads to another address."""


class ModelFailed(CheckFailed):
    """A call to a model failed. ``kind`` says in a word how."""

    def __init__(self, kind: Kind, message: str, remedy: str) -> None:
        super().__init__(message, remedy=remedy)
        self.kind: Kind = kind


def list_causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def name_failure(error: BaseException) -> Kind | None:
    """What kind of failure an error of pydantic-ai is; None for what is none of a model's."""
    from pydantic_ai import exceptions as ai

    causes = list(list_causes(error))
    if any(isinstance(cause, UnreadableReply) for cause in causes):
        return "unreadable"
    if any(isinstance(cause, ssl.SSLError) or "CERTIFICATE_VERIFY" in str(cause) for cause in causes):
        return "tls"
    kinds: tuple[tuple[type[BaseException], Kind], ...] = (
        (ai.ModelContextWindowExceededError, "context_length"),
        (ai.ModelAuthenticationError, "authentication"),
        (ai.ModelNotFoundError, "not_found"),
        (ai.ModelRateLimitError, "rate_limit"),
        (ai.ModelQuotaExceededError, "quota"),
        (ai.ModelUnavailableError, "unavailable"),
        (ai.ModelServerError, "unavailable"),
        (ai.ModelTimeoutError, "timeout"),
        (ai.ModelRequestTimeout, "timeout"),
        (ai.ModelConnectionError, "connection"),
        (ai.ModelHTTPError, "rejected"),
        (ai.ModelAPIError, "garbage"),
        (ai.UnexpectedModelBehavior, "garbage"),
        (ai.UsageLimitExceeded, "no_answer"),
        (ai.UserError, "wrong_setting"),
    )
    return next((kind for type_, kind in kinds if isinstance(error, type_)), None)


def explain_failure(error: BaseException, choice: ModelChoice, redactor: Redactor) -> ClearedError | None:
    """The refusal that a user reads; None for an error that is none of a model's, which is to be raised as it is."""
    refusal = next((cause for cause in list_causes(error) if isinstance(cause, ClearedError)), None)
    if refusal is not None:
        return refusal
    kind = name_failure(error)
    if kind is None:
        return None
    server, model = choice.server, choice.model
    texts: dict[Kind, tuple[str, str]] = {
        "authentication": (f"{server} refuses the key", "Look at the key: cleared llm check."),
        "not_found": (f"{server} has no model {model!r}", "Look up its name, and: cleared config set llm.model NAME."),
        "rate_limit": (f"{server} takes no more calls at the moment", "Try again later."),
        "quota": (f"the account at {server} has no credit left", "Top it up there."),
        "context_length": (f"what was sent is longer than {model} can read at once", "Ask for less at once."),
        "unavailable": (f"{server} cannot answer at the moment", "Try again later."),
        "timeout": (f"{server} did not answer in time", "Try again later."),
        "connection": (
            f"{server} cannot be reached, or hung up",
            "Start it." if choice.is_local else "Look at the network, and at llm.base_url: cleared llm check.",
        ),
        "tls": (
            f"the certificate of {server} cannot be verified",
            "Look whether this is the right address. A proxy of your own needs its certificate in SSL_CERT_FILE.",
        ),
        "unreadable": (f"what {server} answered cannot be read", "Look at llm.base_url, or ask for less at once."),
        "garbage": (f"what {server} answered makes no sense", "Look whether this is the right address and provider."),
        "no_answer": (
            f"{model} gave no answer, however often it was asked: it calls tools, and has none",
            "Choose a model that answers in words: cleared config set llm.model NAME.",
        ),
        "rejected": (f"{server} refuses the call", "Look at llm.provider, llm.model and llm.base_url."),
        "wrong_setting": (f"{model!r} cannot be asked so", "Look at llm.provider and llm.model: cleared llm check."),
    }
    message, remedy = texts[kind]
    said = "" if kind == "no_answer" else str(_innermost_words(error))
    own_words = redactor.redact_text(" ".join(said.split()))[:_MOST_QUOTED]
    return ModelFailed(kind, f"{message}: {own_words}" if own_words else message, remedy)


def _innermost_words(error: BaseException) -> str:
    """What the provider says itself, where it says something, else what the error does."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else body
    words = inner.get("message") if isinstance(inner, dict) else inner
    if isinstance(words, str) and words.strip():
        return words
    unreadable = next((cause for cause in list_causes(error) if isinstance(cause, UnreadableReply)), None)
    last = unreadable or error
    while last.__cause__ is not None and str(last.__cause__).strip():
        last = last.__cause__
    return str(last)
