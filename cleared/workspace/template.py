"""What a new workspace holds."""

from __future__ import annotations

from cleared.workspace import starters
from cleared.workspace.charts import read_starter_chart
from cleared.workspace.settings.editing import set_value

LOG_HEADER = b"timestamp,agent,action,details,entry_id,commit_hash\n"

GITIGNORE = b"""\
# What can be rebuilt, or is only operational.
.cleared/
# Bank files enter the books' history when they have been processed, not before.
import/*
!import/.gitkeep
!import/processed/
# Never in git: secrets, and what is kept or sent elsewhere.
.env
receipts/
exports/
"""

GITATTRIBUTES = b"""\
# Books, scripts and bank files are kept byte for byte.
* -text
# Only ever appended to: when two clones are merged, the lines of both are kept.
logs/*.csv merge=union
logs/*.jsonl merge=union
queue/*.jsonl merge=union
books/bank/** merge=union
"""

_KEPT = (
    "import/processed",
    "books",
    "queue",
    "rules",
    "templates",
    "tests/cases",
    "import",
)


def initial_files(name: str, entity_type: str, currency: str) -> dict[str, bytes]:
    """Relative path → content of everything a new workspace is committed with.

    Raises ``UsageError`` for an unknown kind of business, ``ConfigError`` for a name or currency that the
    configuration does not accept.
    """
    accounts = read_starter_chart(entity_type)
    config = starters.starter_config()
    for key, value in (("name", name), ("entity_type", entity_type), ("currency", currency)):
        config = set_value(config, f"business.{key}", value)
    files = starters.starter_files() | starters.shell_scripts()
    files |= {f"{folder}/.gitkeep": b"" for folder in _KEPT}
    files |= {
        "accounts/chart-of-accounts.csv": accounts,
        "logs/agent-log.csv": LOG_HEADER,
        "config.yaml": config.encode(),
        ".gitignore": GITIGNORE,
        ".gitattributes": GITATTRIBUTES,
    }
    return dict(sorted(files.items()))
