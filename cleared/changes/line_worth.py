"""What a line of attestations is worth on this machine: whose key signed it, and for which books."""

from __future__ import annotations

from typing import Final, Literal

from cleared.changes import attestation
from cleared.changes.attestation_lines import Attestation, parse_attestation
from cleared.changes.host import Host
from cleared.changes.taken_over import find_takeovers, list_taken_over
from cleared.git import Snapshot

Origin = Literal["ours", "genuine", "untrusted", "none"]
"""Of a line, and of the commit that it is about: a run or decision by a key that counts here; with a genuine signature
that nothing here speaks against; with one that does not count; neither."""
COUNTING: Final[tuple[Origin, ...]] = ("ours", "genuine")


class LineWorth:
    """Reads and judges lines as of one commit, each once."""

    def __init__(self, host: Host, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.approvals = attestation.load_approvals(host, snapshot)
        self._counting = attestation.find_counting(host, snapshot)
        #: What a line of the books that these were made from is worth: as much as what takes it over.
        self._taken_over: dict[bytes, Origin] | None = None
        self._read: dict[bytes, tuple[Attestation, Origin] | None] = {}

    def read(self, line: bytes) -> tuple[Attestation, Origin] | None:
        """What a line says, and what it is worth; None where its signature is not valid."""
        if line not in self._read:
            said = parse_attestation(line)
            self._read[line] = None if said is None else (said, self._judge(line, said))
        return self._read[line]

    def parse(self, line: bytes) -> Attestation | None:
        """What a line says; None where its signature is not valid."""
        judged = self.read(line)
        return None if judged is None else judged[0]

    def is_own(self, line: bytes) -> bool:
        """Whether a line is worth the same whatever takes it over: by its signer alone, or as it has no signature."""
        said = self.parse(line)
        return said is None or self._judge_attestation(said) == "ours"

    def _judge(self, line: bytes, said: Attestation) -> Origin:
        origin = self._judge_attestation(said)
        if origin == "ours":
            return origin
        if self._taken_over is None:
            self._taken_over = self._read_takeovers()
        return self._taken_over.get(line, origin)

    def describe(self) -> list[object]:
        """All that it depends on, but for lines that take over others: two that are equal judge alike."""
        identity, counting = self.approvals.identity, self._counting
        return [sorted(counting.keys), sorted(counting.books), identity.id, identity.pinned, self.approvals.workspace]

    def _read_takeovers(self) -> dict[bytes, Origin]:
        taken: dict[bytes, Origin] = {}
        for takeover in find_takeovers(self._snapshot):
            origin = self._judge_attestation(takeover)
            if origin in COUNTING:
                for line, _ in list_taken_over(self._snapshot, takeover):
                    if taken.get(line) != "ours":
                        taken[line] = origin
        return taken

    def _judge_attestation(self, said: Attestation) -> Origin:
        if said.key in self._counting.keys and said.workspace in self._counting.books:
            return "ours"
        if said.workspace != self.approvals.workspace and not said.workspace.startswith(attestation.CLONE_PREFIX):
            return "none"
        return "untrusted" if self.approvals.identity.pinned else "genuine"
