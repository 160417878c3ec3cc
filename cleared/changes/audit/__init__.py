"""Whether the committed history is what runs and decisions made of it."""
