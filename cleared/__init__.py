"""A host runtime for small, sandboxed, approved agent scripts."""

__version__ = "0.1.0"
