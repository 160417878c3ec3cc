"""The kinds of cards, and all that is said about each: those that any agent's runs may leave, and what domains declare.

Lists, screens, commands, notifications and the reference take titles, labels, answers and meanings from here. A new
kind is one more ``CardKind`` here, or in ``Domain.list_card_kinds``, and the code that makes its cards.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from cleared.domains.installed_domains import DomainTable, load_domains

INTRODUCTION: Final = "A card is a question that waits for a person."
"""Said once wherever cards are shown."""
SEEN: Final = MappingProxyType({"seen": "Seen."})


class CardKind(Struct, frozen=True):
    """What a sort of card asks, and what can be done about it."""

    name: str
    """Its name in the queue's files and in JSON."""
    title: str
    """The heading of one card."""
    label: str
    """A word or two for a row of a list; empty for the usual kind."""
    meaning: str
    """What such a card says, in one sentence."""
    settled_by: str
    """What settles it, besides an answer; empty where nothing else does."""
    answers: Mapping[str, str] = {}
    """What ``cleared queue answer`` takes: answer → what it means. A question's answers are in the card itself."""
    actions: Mapping[str, str] = {}
    """What else a person can do about it: verb (``review.card_actions``) → label."""
    person_only: bool = False
    """Whether such a card of a run is a person's to settle: one that is settled by nobody's decision is a violation."""


PROPOSAL: Final = CardKind(
    "proposal",
    "Proposal",
    "proposal",
    "A change of scripts, settings or tests, to approve or reject.",
    "Approving or rejecting the proposal.",
    actions={"approve": "Approve: it becomes live", "decline": "Reject"},
)
QUESTION: Final = CardKind(
    "question",
    "Question",
    "question",
    "A script asks, and waits for the answer.",
    "One of its choices, a rejection, or what the script said for when nobody answers in time.",
    person_only=True,
)
FAILED_RUN: Final = CardKind(
    "failed_run",
    "Failed run",
    "failed run",
    "A run failed; nothing of it was done.",
    "A later run that succeeds, for the same event or with the same files.",
    answers={"seen": "Seen; it is not tried again."},
    actions={"retry": "Run it again now"},
)
TAKEN_BACK: Final = CardKind(
    "taken_back",
    "Change taken back",
    "taken back",
    "A change of an agent turned out badly, and was taken back; what it made is listed.",
    "",
    answers={"seen": "Seen; it stays taken back."},
)
BAD_FILE: Final = CardKind(
    "bad_file",
    "File that was not taken",
    "bad file",
    "A file that was handed in cannot be read, or git brought it; it stays where it is.",
    "A later run that takes the file, or a refusal of it for another reason.",
    answers={"seen": "Seen; the file stays where it is."},
)
DUPLICATE_FILE: Final = CardKind(
    "duplicate_file",
    "Rows that came before",
    "came before",
    "A file came before, or rows of it of which the bank does not say that they are the same.",
    "",
    answers=SEEN,
)
GROWN_FILE: Final = CardKind(
    "grown_file",
    "File written to after its import",
    "grew",
    "A file was written to after it was imported; all of it lies in import/ again.",
    "",
    answers=SEEN,
)
SET_ASIDE: Final = CardKind(
    "set_aside",
    "File set aside",
    "set aside",
    "A file made its agent fail again and again; it lies in import/failed/.",
    "A later import of the file.",
    answers={"seen": "Seen; the file stays in import/failed/."},
)
EVENT_CYCLE: Final = CardKind(
    "event_cycle",
    "Agents starting one another",
    "event cycle",
    "Agents start one another by events; the chain was stopped.",
    "",
    answers=SEEN,
)
DAMAGE: Final = CardKind(
    "damage",
    "Damage found by a check",
    "damage",
    "A check found something wrong with the books.",
    "The next `cleared check --card` that finds it gone.",
    answers={"seen": "Seen; it is not asked again."},
)
TASK: Final = CardKind(
    "task",
    "Proposed task",
    "task",
    "A script proposes a task, with a command that this machine would run.",
    "`cleared task add --card CARD`.",
    answers={"decline": "No task is made of it."},
    person_only=True,
)
AGREEMENT: Final = CardKind(
    "agreement",
    "Takes two reviewers",
    "takes two",
    "Somebody has decided something that takes two; the other does the same, or it is withdrawn.",
    "The same decision by a second reviewer.",
    answers={"withdraw": "Nothing comes of it."},
)
CONTRADICTION: Final = CardKind(
    "contradiction",
    "Decisions that differ",
    "differs",
    "What looks alike was decided in different ways, so that no rule can be learned from it.",
    "Nothing else.",
    answers={
        "most": "It is always as most were decided; the others were exceptions.",
        "last": "It is always as the last one was decided.",
        "ask": "It differs each time: go on asking.",
    },
)

BRANCH: Final = CardKind(
    "branch",
    "Files on a branch",
    "branch",
    "A program changed files that no agent uses, but that you may run (a Makefile). They wait on a branch.",
    "Nothing else.",
    answers={"merge": "The files become part of the workspace.", "drop": "Nothing is taken over; the branch stays."},
)
LEFT_OUT: Final = CardKind(
    "left_out",
    "Left out by a sync",
    "left out",
    "What was done here would mean something else on top of what others did, so `cleared sync` did not do it again.",
    "Nothing else.",
    answers={
        "seen": "Seen; what others did stands. Do it again where you still want it; move a file that it names back to "
        "import/."
    },
)
PUSH_REJECTED: Final = CardKind(
    "push_rejected",
    "Others push all the time",
    "push rejected",
    "A fleet's worker could not push what it did, as others pushed each time; it tries again.",
    "Nothing else.",
    answers=SEEN,
)
CYCLE_NOTE: Final = CardKind(
    "cycle_note",
    "Left by an AI cycle",
    "AI cycle",
    "What an AI cycle did that was not taken over, and why.",
    "Nothing else.",
    answers={"seen": "Seen."},
)

_OF_THE_RUNTIME: Final = tuple(kind for kind in list(vars().values()) if isinstance(kind, CardKind))


def _list_kinds() -> dict[str, CardKind]:
    kinds = (*_OF_THE_RUNTIME, *(kind for domain in load_domains() for kind in domain.list_card_kinds()))
    return {kind.name: kind for kind in kinds}


KINDS: Final[Mapping[str, CardKind]] = DomainTable(_list_kinds)
"""All kinds by name: those here, in the order in which they are defined, and those of the domains."""


def kind_named(name: str) -> CardKind:
    """The kind of that name; a plain one for a name that is not known, such as one that a later version wrote."""
    words = name.replace("_", " ")
    return KINDS.get(name) or CardKind(name, words.capitalize(), words, words, "")
