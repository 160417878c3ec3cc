"""Scripts: reading their header, refusing what they may not contain, running them in isolation.

Nothing is imported here: start-up reaches this package, the interpreter is slow to import.
"""
