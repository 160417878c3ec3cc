"""Joining two clones: what one has not pushed is done again on top of what others have pushed."""
