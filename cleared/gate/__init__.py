"""The gate: what a script must pass before a human is asked about it. A visible list of stages."""
