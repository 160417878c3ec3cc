"""Proposals: changing what is approved. A proposal is made, examined by the gate, and decided by a person."""
