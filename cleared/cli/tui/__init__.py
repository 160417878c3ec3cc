"""``cleared review`` in a terminal: a screen with one key a decision, and plain prompts where it is no screen."""
