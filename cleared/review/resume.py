"""Going on with a run whose question has been answered."""

from __future__ import annotations

from cleared.cards import store
from cleared.errors import UsageError
from cleared.runs.asking import again
from cleared.runs.attempt import MakeExecutor
from cleared.runs.execute import run_agent
from cleared.runs.host import Host
from cleared.runs.outcome import RunResult
from cleared.runs.source import CommittedSource
from cleared.vcs import Snapshot, history


def resume(host: Host, executor: MakeExecutor, card_id: str) -> RunResult | None:
    """Run again the run that this question stopped, with all answers that its questions have; None where it has
    ended already.

    Raises ``UsageError`` where there is no such question or no answer yet, and what a run raises.
    """
    with host.reading() as repo:
        cards = store.load(CommittedSource(Snapshot(repo, repo.head())), host.layout.queue_dir)
        card = cards.get(card_id)
        if card is None or card.kind != "question" or card.status == "open":
            raise UsageError(f"{card_id} is not an answered question", remedy="cleared queue list shows the open ones.")
        run = str(card.details.get("run"))
        answers = {
            str(c.details["key"]): str(c.resolution)
            for c in cards.values()
            if c.kind == "question" and c.status == "resolved" and c.details.get("run") == run
        }
    if any("Event" in c.trailers for c in history.find_by_trailer(host.root, "Run", run)):
        return None
    going_on = again(card, answers)
    name = going_on.script.partition("@")[0].rsplit("/", 1)[-1].removesuffix(".py")
    return run_agent(host, executor, name, again=going_on)
