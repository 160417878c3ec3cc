"""Whether the books are in order, in a commit, between commits and in the working tree."""
