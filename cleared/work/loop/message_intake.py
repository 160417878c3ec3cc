"""Taking messages and scripts' requests into the loop's queue."""

from __future__ import annotations

from cleared.base.errors import PolicyError, WorkspaceError
from cleared.jobs import inbox
from cleared.jobs.job_types import resolve_request
from cleared.jobs.records import InboxMessage
from cleared.triggers.requested_jobs import CommittedJobRequest
from cleared.work.loop.script_requests import ScriptRequests
from cleared.work.loop.state_store import StateStore
from cleared.workspace.settings.model import Config


class MessageIntake:
    """Moves what waits in the inbox, and what scripts have asked for, into a loop's state."""

    def __init__(self, store: StateStore, config: Config, requests: ScriptRequests) -> None:
        self.config = config
        """The settings that hold now; the loop replaces them when they change."""
        self._store = store
        self._requests = requests

    def take_messages(self) -> bool:
        """Take in all that waits; whether there was anything. The state is saved before the messages are removed."""
        store, state = self._store, self._store.state
        taken = []
        queued_ids = {job["job_id"] for job in state["queue"]}
        for path, message in inbox.read_messages(store.runtime):
            if isinstance(message, WorkspaceError):
                store.record_safety_stop("", "", "inbox", f"a message cannot be read: {message}")
            else:
                self._take_message(message, queued_ids)
            taken.append((path, not isinstance(message, WorkspaceError)))
        requests, cursor = self._requests.requests_since(state["cursor"])
        room = max(0, inbox.MAX_WAITING - len(state["queue"]))
        if len(requests) > room:  # the cursor stays, so that the rest is taken another time
            requests, cursor = requests[:room], state["cursor"]
        for request in requests:
            self._take_request(request)
        if taken or requests or cursor != state["cursor"]:
            state["cursor"] = cursor
            store.save(twice=True)  # a backup without these messages could not get them back
            store.step("messages taken")
            self._requests.mark_taken(requests)
            for path, is_readable in taken:
                inbox.remove_message(path) if is_readable else inbox.set_aside_message(path)
        return bool(taken or requests)

    def _take_message(self, message: InboxMessage, known: set[str]) -> None:
        """``known``: the ids of the queued jobs; a message that was taken in before adds nothing."""
        store, state, job = self._store, self._store.state, message["job"]
        if message["what"] == "refused" and message["refused"] is not None:
            refused = message["refused"]
            store.record_safety_stop(refused["kind"], refused["target"], refused["by"], refused["reason"])
        elif message["what"] in ("pause", "resume"):
            state["paused"] = message["what"] == "pause"
            if state["running"] is None:
                state["status"] = "paused" if state["paused"] else "idle"
            store.log("paused" if state["paused"] else "resumed")
        elif job is not None and job["job_id"] not in known and not store.has_ended(job["job_id"]):
            running = state["running"]
            if running is None or running["job_id"] != job["job_id"]:
                known.add(job["job_id"])
                state["queue"].append(job)

    def _take_request(self, request: CommittedJobRequest) -> None:
        """Queue a script's job. It was checked when the script asked; the settings may have changed since."""
        store, longest = self._store, self.config.triggers.max_depth
        label = f"{request.kind} {request.target}, asked for by {request.requested_by},"
        if request.depth > longest:
            text = f"{label} is not run: the chain that leads to it is too long"
            store.add_notice(f"{text} (triggers.max_depth: {longest})")
            store.log(text)
            return
        try:
            job_type, target = resolve_request(self.config, store.runtime.root, request.kind, request.target)
        except PolicyError as error:
            store.record_safety_stop(request.kind, request.target, request.requested_by, str(error))
            return
        job = inbox.reserve_job(store.runtime, job_type, target, request.requested_by, store.clock)
        store.state["queue"].append(inbox.sign_job(job, store.signer))
