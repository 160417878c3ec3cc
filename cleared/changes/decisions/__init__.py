"""What people decide: the one place where a decision becomes a commit."""
