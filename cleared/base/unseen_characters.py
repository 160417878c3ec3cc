"""Characters that a program or a model reads and a person does not see; the one list of them."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

INVISIBLE: Final = (
    "[\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800"
    "\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""Unicode's Default_Ignorable_Code_Point, the spaces other than the usual one, and blanks that count as letters: none
is in ASCII. A pattern that is compiled when a text has more than that, as it takes as long as a module to import."""
_CATEGORIES: Final = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
"""Control and formatting characters, halves of characters, private ones, ends of lines and paragraphs."""


def is_unseen(char: str) -> bool:
    """Whether the character shows nothing, or a blank that is not the usual one."""
    return unicodedata.category(char) in _CATEGORIES or re.match(INVISIBLE, char) is not None
