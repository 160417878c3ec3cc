"""Telling people what waits for them: when a message is due, and the channels it goes through."""
