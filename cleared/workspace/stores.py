"""Everything that is written beside git's history: where it lies, what it is, and whether a backup carries it.

``cleared backup`` goes by this list, and so does the reference page. What lies in the state folder or among git's own
files and is not declared here is carried; the test of a workspace that was lived in fails for it.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final, Literal

from msgspec import Struct

StorePlace = Literal["home", "state", "git"]
"""``$CLEARED_HOME``, ``.cleared/``, or the clone's git directory."""


class Store(Struct, frozen=True):
    """Some files of one kind. ``pattern``: their path in the place, where ``*`` is any text, ``MARK`` the clone's mark
    and ``ID`` the id of the books. ``is_carried``: whether a backup has them. ``is_personal``: they are the person's,
    on whichever machine; all others make one clone on one machine what it is. ``is_moved``: in a fleet they go with the
    workspace from worker to worker."""

    place: StorePlace
    pattern: str
    about: str
    is_carried: bool = True
    is_personal: bool = False
    is_moved: bool = False

    def matches(self, path: str, workspace: str = "*", mark: str = "*") -> bool:
        """Whether the file at this path, relative to the place, is one of them."""
        return fnmatchcase(path, self.pattern.replace("MARK", mark or "-").replace("ID", workspace or "-"))


STORES: Final = (
    Store("home", "approval-key", "the key that a person approves with", is_personal=True),
    Store("home", "run-key", "the key of this machine's runs and decisions"),
    Store("home", "task-key", "the key of the tasks that were taken on this machine"),
    Store("home", "loop-key", "the key of queued jobs"),
    Store("home", "*-key.pub", "the public halves of these keys; made again", is_carried=False),
    Store("home", "index-key", "the seal of `.cleared/books/`; made again", is_carried=False),
    Store(
        "home", "workspaces/ID.json", "whose approvals count in these books, and what was withdrawn", is_personal=True
    ),
    Store(
        "home",
        "clones/MARK.json",
        "the pin: which books the clone holds; written anew for the new place",
        is_carried=False,
    ),
    Store("home", "checkpoints/MARK.json", "what this machine saw last of the books"),
    Store("home", "shown/*.json", "what was shown on this machine, and may be approved", is_carried=False),
    Store("home", "clients/fleet.json", "digests of tokens for the metrics of a fleet", is_personal=True),
    Store("home", "clients/MARK.json", "digests of HTTP tokens, and secrets of webhooks"),
    Store("home", "passkey-counters.json", "how often each passkey has signed"),
    Store(
        "home",
        "passkey-invitations/*",
        "invitations to register a passkey, and the ports that servers have",
        is_carried=False,
    ),
    Store("home", "sign-in-links/*", "links that sign in to the page, each for ten minutes", is_carried=False),
    Store("home", "push-key", "the key that messages to phones are signed with"),
    Store("home", "push/MARK.json", "the phones that get messages, and when each person was told last"),
    Store("home", "push/*.lock", "who changes that", is_carried=False),
    Store("home", "push/.gitignore", "keeps the folder out of git", is_carried=False),
    Store("home", "backups/MARK.json", "when and where the last backup was made", is_carried=False),
    Store("home", "fleet.json", "the fleet that this machine belongs to", is_personal=True),
    Store(
        "home", "fleet/*", "clones of a fleet's workspaces, and what jobs in them need; made again", is_carried=False
    ),
    Store("git", "cleared-clone", "the clone's mark, by which its files beside the key are named"),
    Store("git", "cleared-origin", "the mark that the clone's commits name"),
    Store("git", "cleared-webhooks/*", "calls of webhooks that were accepted, with their bodies"),
    Store("git", "cleared-index-*", "an index that is being written", is_carried=False),
    Store("git", "cleared-repack.lock", "who joins packs, and since when", is_carried=False),
    Store("state", "*.tmp", "files that are being written", is_carried=False),
    Store("state", ".gitignore", "keeps the folder out of git"),
    Store("state", "*/.gitignore", "the same for folders in it"),
    Store("state", "lock", "who is writing", is_carried=False),
    Store("state", "*.lock", "who serves, runs jobs, sends …", is_carried=False),
    Store("state", "waiting-[0-9]*", "who waits for the lock", is_carried=False),
    Store("state", "backup-work/*", "the history while a backup is made or looked at", is_carried=False),
    Store("state", "books/*", "the index of the books, and other things read before; made again", is_carried=False),
    Store("state", "consumed.db*", "the index of events that had their run; made again", is_carried=False),
    Store("state", "task-ledger.db*", "the index of the ledger of tasks; made again", is_carried=False),
    Store("state", "service.json", "the status of the service that is up", is_carried=False),
    Store("state", "service.out", "what a service printed as it started", is_carried=False),
    Store("state", "loop/loop.bell", "wakes the loop", is_carried=False),
    Store("state", "*/tmp/*", "temporary files of what runs now", is_carried=False),
    Store("state", "cycles/*", "the clone of the cycle that runs now", is_carried=False),
    Store("state", "task-work/*", "the clone in which a task is worked on now", is_carried=False),
    Store("state", "task-run.stop", "asks who works on tasks to end", is_carried=False),
    Store("state", "task-plans/clone/*", "the clone in which a list of tasks is written now", is_carried=False),
    Store("state", "task-wait.json", "until when the loop's turns at tasks wait", is_carried=False),
    Store("state", "task-kept/*", "what the worker of a task that failed had changed, in a clone", is_carried=False),
    Store("state", "task-trees/*", "the clone in which a task is verified now", is_carried=False),
    Store("state", "sessions/*/run/*", "what commands of a session need while they run", is_carried=False),
    Store("state", "sessions/*/tree/*", "what commands of a session work in", is_carried=False),
    Store("state", "inbox.db*", "runs that wait, marks of schedules, the cursor, what was dealt with", is_moved=True),
    Store("state", "runs.db*", "traces of runs: every call with its result"),
    Store("state", "llm.db*", "what models were asked, and what it has cost"),
    Store("state", "llm-answers.db*", "what models have answered to scripts"),
    Store("state", "waiting-log.csv", "log rows that join the next commit", is_moved=True),
    Store("state", "seal.json", "a commit that was interrupted"),
    Store("state", "taken/*", "imported bank files, held for some days as they may grow"),
    Store("state", "shadow.json", "what proposed versions have shown beside the live ones", is_moved=True),
    Store("state", "sync.out", "what the last sync of the service has printed"),
    Store("state", "improved", "when agents learned last by night, and what was found", is_moved=True),
    Store("state", "notify.json", "notifications to send", is_moved=True),
    Store("state", "script-messages.json", "messages of scripts to send", is_moved=True),
    Store("state", "mcp-token.secret", "the token of MCP clients over HTTP"),
    Store("state", "service.log*", "what the service did"),
    Store("state", "sessions/*", "sessions of language models: their records and drafts"),
    Store("state", "loop/*", "the loop: its queue, its jobs and their results, its log"),
    Store("state", "task-seals/*", "tasks that a person has taken on this machine"),
    Store("state", "task-plans/*", "lists of tasks that a program wrote, and nobody has taken"),
    Store("state", "engine-spending.json", "what engines have used, in cycles and for tasks"),
    Store("state", "task-claims/*", "who works on a task"),
    Store("state", "task-output/*", "what workers and verification commands printed"),
    Store("state", "task-recording.json", "lines of the ledger of tasks that are being committed"),
    Store("state", "task-ledger.torn", "a half line that was taken out of the ledger of tasks"),
    Store("state", "*.damaged*", "what was damaged and set aside, for a person to look at"),
    Store("state", "runs.set-aside-*", "the traces from before cleared doctor --rebuild"),
)


def find_store(place: StorePlace, path: str, workspace: str = "*", mark: str = "*") -> Store | None:
    """What the file at this path of the place is; None where it is declared nowhere."""
    return next((s for s in STORES if s.place == place and s.matches(path, workspace, mark)), None)


def is_carried(place: StorePlace, path: str) -> bool:
    """Whether a backup carries the file at this path of the state folder or the git directory."""
    store = find_store(place, path)
    return store is None or store.is_carried
