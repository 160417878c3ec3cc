"""Who has approved which script, which policy, which cases: signed records, and what they are worth here."""
