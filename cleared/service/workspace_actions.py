"""What a service does in one workspace, with one sandbox that is kept from run to run.

Language models are asked beside the runs: each run that waits for answers has a thread of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Self

from cleared.base.errors import BusyError
from cleared.changes.host import Host
from cleared.gate.proposals.taking_back import take_back_bad_changes
from cleared.gate.shadow import run_shadows
from cleared.review.questions import settle_due_questions
from cleared.runs.attempt import Attempt, Event
from cleared.runs.execution import run_agent
from cleared.runs.model_asking import ModelAsker, WaitsForModel
from cleared.runs.outcome import RunResult
from cleared.sandbox.executor import Executor

_LOOK_AGAIN: Final = timedelta(seconds=1)
"""While a model is asked for a run that goes on after a question."""


class WorkspaceActions:
    """What the service has done for a workspace (the ``ServiceActions``). A context manager: the sandbox ends with it.

    ``open_workspace`` opens the workspace of a root; ``on_ended`` is called after each run.
    """

    def __init__(
        self,
        root: Path,
        open_workspace: Callable[[Path], Host],
        on_ended: Callable[[Attempt, RunResult], None] | None = None,
    ) -> None:
        self.root, self._open_workspace, self._on_ended = root, open_workspace, on_ended
        self._sandbox: tuple[tuple[str, str], AbstractContextManager[Executor], Executor] | None = None
        """The settings that the sandbox was started with, the sandbox's context manager, and the sandbox."""
        self._reported: set[str] = set()
        self.on_answered: Callable[[], None] = lambda: None
        self._askings = ModelAskings(lambda: self.on_answered())

    def open_host(self) -> Host:
        """The workspace as it is now. Its runs use the sandbox that is kept here."""
        host = self._open_workspace(self.root)
        host.on_ended = self._on_ended
        start = host.make_executor
        assert start is not None
        host.make_executor = lambda host: nullcontext(self._keep_executor(host, start))
        return host

    def run_agent(self, host: Host, agent: str, event: Event) -> RunResult:
        with self._askings.keep_asker(host, agent, str(event.key)) as asker:
            return run_agent(host, agent, event=event, asker=asker)

    def settle_questions(self, host: Host, log: Callable[..., None]) -> datetime | None:
        """Continue the runs whose questions are answered, and settle overdue ones. Returns when the next is due."""

        def keep_asker(card_id: str) -> AbstractContextManager[ModelAsker]:
            return self._askings.keep_asker(host, f"question {card_id}", card_id)

        settled = settle_due_questions(host, host.clock.now(), own=True, keep_asker=keep_asker)
        for result in settled.runs:
            outcome = "went on" if result.error is None else f"went on and failed: {result.error}"
            log(f"run.{result.status}", f"{result.agent} {outcome}", agent=result.agent, run=result.run_id)
        if settled.runs:
            self.look_at_changes(host, log, sorted({result.agent for result in settled.runs}))
        for text in settled.messages:
            if text not in self._reported:  # what is held stays so until somebody does something
                log("question.trouble", text, level="warning")
        self._reported = set(settled.messages)
        if settled.waits_for_model:
            return min(filter(None, (settled.next_due, host.clock.now() + _LOOK_AGAIN)))
        return settled.next_due

    def look_at_changes(self, host: Host, log: Callable[..., None], agents: list[str] | None) -> None:
        """Have shadows follow the runs of these agents; take back the changes (None: of all) that turned out badly."""
        if (host.root / host.layout.shadows).exists():
            for agent in agents or ():
                run_shadows(host, agent)
        for text in take_back_bad_changes(host, agents):
            log("change.taken_back", text, level="warning")

    def confinement_level(self, host: Host) -> str:
        """How well the sandbox is confined, for the log."""
        with host.executor() as executor:
            return str(getattr(executor, "level", "as the bridge reaches"))

    def _keep_executor(self, host: Host, start: Callable[[Host], AbstractContextManager[Executor]]) -> Executor:
        """The sandbox; another one where the settings name another."""
        settings = (host.config.sandbox.transport, host.config.sandbox.confine)
        if self._sandbox is None or self._sandbox[0] != settings:
            self._close()
            manager = start(host)
            self._sandbox = (settings, manager, manager.__enter__())
        return self._sandbox[2]

    def _close(self) -> None:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            sandbox[1].__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


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
