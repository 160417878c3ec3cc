"""What the process of a job needs, imported once by the process that they are forked off. It holds no secrets and does
nothing."""

from __future__ import annotations

import importlib

from cleared.domains.installed_domains import load_domains
from cleared.service.fleet import workspace_job as workspace_job

for _name in ("pydantic_monty", "psycopg", "obstore", "yaml", "cryptography.hazmat.primitives.asymmetric.ed25519"):
    importlib.import_module(_name)
load_domains()
