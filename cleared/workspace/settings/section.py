"""How a section of the configuration is declared: a struct whose docstrings become the reference page.

Each setting says where it stands whether it takes effect only when a person has approved it: ``Protected`` (or
``Program``, ``Reserved``), ``Harmless``, or ``Secret``. One without a default must be given.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from msgspec import Struct


class Section(Struct, frozen=True):
    """What all sections are."""


class Declaration(Struct, frozen=True):
    """What is declared of a setting, beside its type."""

    approval: Literal["protected", "harmless", "secret"]
    program: bool = False
    reserved: bool = False


_T = TypeVar("_T")

Protected = Annotated[_T, Declaration("protected")]
"""A setting that takes effect only when a person has approved it."""
Program = Annotated[_T, Declaration("protected", program=True)]
"""A protected setting by which this machine runs a program, or sends something out."""
Reserved = Annotated[_T, Declaration("protected", reserved=True)]
"""A setting that is accepted and checked, and that no part of the program reads yet; the reference says so. A script
may still read it, so it is protected."""
Harmless = Annotated[_T, Declaration("harmless")]
"""A setting that takes effect at once, whoever wrote it: at worst it is a nuisance to the person who reads."""
Secret = Annotated[_T, Declaration("secret")]
"""A setting that takes effect at once, as it cannot be approved: what is approved is kept in the repository."""
