"""Asking language models beside the runs of a service: each run that waits for answers has a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from cleared.base.errors import BusyError
from cleared.changes.host import Host
from cleared.runs.model_asking import ModelAsker, WaitsForModel

MAX_ASKED_AT_ONCE: Final = 4
"""Runs of a service for which a model is asked at the same time; the others wait for their turn."""


class BackgroundAsker(ModelAsker):
    """Asks in a thread of its own, which keeps no process from ending: it commits nothing, and what it learns is in the
    cache as soon as it is known. ``turns`` bounds how many ask at once; ``on_answered`` is called in that thread."""

    def __init__(self, host: Host, turns: threading.Semaphore, on_answered: Callable[[], None]) -> None:
        super().__init__(host)
        self._turns, self._on_answered = turns, on_answered
        self._error: BaseException | None = None

    def ask_model(self) -> None:
        """Begin to ask, and raise ``WaitsForModel``."""
        self.is_asking = True
        threading.Thread(target=self._ask_in_thread, name="ask a model", daemon=True).start()
        raise WaitsForModel(self)

    def require_answers(self) -> None:
        """Raises ``WaitsForModel`` while the model is asked, and what an error in the program raised meanwhile."""
        if self.is_asking:
            raise WaitsForModel(self)
        if self._error is not None:
            raise self._error

    def _ask_in_thread(self) -> None:
        try:
            with self._turns:
                super().ask_model()
        except BaseException as error:  # noqa: BLE001  # raised again where the run is taken up
            self._error = error
        finally:
            self.is_asking = False
            self._on_answered()


class ModelAskings:
    """The runs of one service that wait for a model: one of each agent, and one of each answered question."""

    def __init__(self, on_answered: Callable[[], None]) -> None:
        self._on_answered = on_answered
        self._turns = threading.Semaphore(MAX_ASKED_AT_ONCE)
        self._askers: dict[str, tuple[str, BackgroundAsker]] = {}
        """Agent, or question → the key of the event, and what asks for it."""

    @contextmanager
    def keep_asker(self, host: Host, name: str, key: str) -> Iterator[BackgroundAsker]:
        """What asks for this run, with the answers that it has so far; kept until the run has ended.

        Raises ``WaitsForModel`` while it asks.
        """
        known_key, asker = self._askers.get(name, ("", None))
        if asker is None or known_key != key:
            asker = BackgroundAsker(host, self._turns, self._on_answered)
            self._askers[name] = key, asker
        is_over = True
        try:
            asker.require_answers()
            yield asker
        except (WaitsForModel, BusyError):
            is_over = False
            raise
        finally:
            if is_over:
                del self._askers[name]
