"""What every change of the books needs: the open workspace, one view of a commit, a draft, and its records."""
