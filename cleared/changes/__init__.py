"""What every change of the books stands on: the open workspace, one view of a commit, a draft, and its record."""
