"""AI cycles: a coding engine works in a private clone, again and again, and what it changed goes through the gate."""
