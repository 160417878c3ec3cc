"""The files that only runs and decisions may change: the records of each domain, queue, logs and approvals."""

from __future__ import annotations

from cleared.base.safe_files import is_temporary
from cleared.domains.installed_domains import load_domains
from cleared.git import Snapshot
from cleared.workspace.location import Layout


class ManagedFiles:
    """Tells the managed files of one workspace from others, as its folders are at this moment."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.audits = [domain.audit(layout) for domain in load_domains()]
        records = [folder for audit in self.audits for folder in audit.folders]
        self.audited_folders = [*records, layout.queue_dir, layout.logs_dir]
        """Where those lie of which each commit is explained; approvals are judged by their signatures."""
        self.folders = [*self.audited_folders, layout.approvals_dir]
        """Where they lie, relative to the workspace."""
        self._shared = {shared.path for audit in self.audits for shared in audit.shared_files}
        self._prefixes = tuple(f"{folder}/" for folder in self.folders)

    def has_path(self, path: str) -> bool:
        """Whether only runs and decisions may change what is at a relative path."""
        if is_temporary(path) or self.is_definition(path):  # nothing reads a temporary file that somebody has committed
            return False
        return self.lies_inside(path)

    def lies_inside(self, path: str) -> bool:
        """Whether a path is in one of their folders, or a record, whatever it is there."""
        return path.startswith(self._prefixes) or any(audit.is_record_file(path) for audit in self.audits)

    def is_definition(self, path: str) -> bool:
        """Whether a file counts as far as a person has approved its text: anybody may edit it."""
        return any(audit.is_definition(path) for audit in self.audits)

    def has_row_file(self, path: str) -> bool:
        """Whether the host itself might write this very path: a stray file there must not be overwritten."""
        return path.endswith((".csv", ".jsonl")) and self.has_path(path)

    def is_counted(self, path: str) -> bool:
        """Whether only runs and decisions add to a file, so that its rows are part of the state which they attest."""
        if is_temporary(path) or path in self._shared:
            return False
        return path.startswith(f"{self._layout.queue_dir}/") or any(a.is_record_file(path) for a in self.audits)

    def list_counted_roots(self, commit: Snapshot) -> set[str]:
        """The folders of a commit below which such files lie."""
        records = {folder for audit in self.audits for folder in (*audit.folders, *audit.list_roots(commit))}
        return {*records, self._layout.queue_dir}
