"""How a domain judges its records wherever they lie: in a commit, between two commits, in the working tree."""

from __future__ import annotations

from collections.abc import Collection

from cleared.base.file_source import FileSource
from cleared.domains.effects import Effect
from cleared.workspace.location import Layout


class RecordAudit:
    """The judge of one domain's records. By itself it finds nothing: a domain says more where it can."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def list_effects(self, before: FileSource, after: FileSource, files: Collection[str]) -> list[Effect]:
        """What was done from one commit to another that may take a reviewer's right. ``files``: those that differ.
        Raises ``WorkspaceError`` where records cannot be read."""
        return []
