"""The tools of a session: reading the workspace, writing a draft of its own, and proposing that draft to a person."""
