"""What ``config.yaml`` says of other clones of the books."""

# Without annotations from __future__: each would be a text, to be compiled by every command that reads its settings.

from cleared.workspace.settings.section import Program, Protected, Section


class Sync(Section, frozen=True, kw_only=True):
    """Other clones of these books."""

    remote: Program[str | None] = None
    """The other repository with which the service joins this clone by itself: a name that git knows, such as
    ``origin``. None: it joins none."""
    minutes: Protected[int] = 10
    """How long it waits before the next time."""
