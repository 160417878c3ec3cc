"""Which importers there are: the built-in ones, the configuration's profiles, the plug-ins it switches on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from cleared.base.errors import Place, WorkspaceError
from cleared.books.bank_files.base import Importer
from cleared.books.bank_files.camt import Camt
from cleared.books.bank_files.chase import ChaseCard, ChaseChecking, find_last4_in_name
from cleared.books.bank_files.csv_profile import ProfileImporter
from cleared.books.bank_files.mt940 import Mt940
from cleared.books.bank_files.ofx import Ofx
from cleared.books.bank_files.qif import Qif, QifDayFirst, QifMonthFirst
from cleared.workspace.plugin_group import ANY_NAME, PluginGroup
from cleared.workspace.settings.model import Config

PLUGINS = PluginGroup("importer", "cleared.importers", "import.plugins", ANY_NAME)
_KINDS: tuple[Any, ...] = (ChaseChecking, ChaseCard, Ofx, Camt, Mt940, Qif, QifMonthFirst, QifDayFirst)
BUILT_IN: dict[str, Any] = {kind.name: kind for kind in _KINDS}
STATEMENT_FORMATS = ("ofx", "camt", "mt940", "qif", "qif_mdy", "qif_dmy")
"""Built-in formats that no bank owns; most state the account's number."""
NAME_READERS = (find_last4_in_name,)
"""``(file name, format) → last four digits`` for banks that name their files after the account."""


def load_importers(config: Config) -> dict[str, Importer]:
    """Every importer by name. Raises ``WorkspaceError`` for a missing plug-in or a name with two owners.

    Entry points are looked up only where ``import.plugins`` names one that is not built in: the look-up
    reads the metadata of every installed package.
    """
    settings = config.import_
    importers: dict[str, Importer] = {n: kind(settings.max_rows) for n, kind in BUILT_IN.items()}
    owners = dict.fromkeys(importers, "cleared itself")
    for name, profile in settings.profiles.items():
        if name in importers:
            raise _duplicate_name_error(name, owners[name], "a profile")
        importers[name] = ProfileImporter(profile, settings.max_rows)
        owners[name] = "a profile"
    for name in dict.fromkeys(settings.plugins):
        if name in BUILT_IN:
            continue
        if name in importers:
            raise _duplicate_name_error(name, owners[name], "a plug-in")
        importers[name] = PLUGINS.load(name, cast("type[Any]", Importer), lambda found: found())
        owners[name] = "a plug-in"
    return importers


def load_bank_presets(config: Config) -> Mapping[str, Importer]:
    """The presets that no importer of the workspace has the name of: its own description of a bank comes first."""
    from cleared.books.bank_files.csv_presets import load_presets  # late: most files need none of them

    own = {*BUILT_IN, *config.import_.profiles, *config.import_.plugins}
    return {name: preset for name, preset in load_presets(config.import_.max_rows).items() if name not in own}


def _duplicate_name_error(name: str, one: str, other: str) -> WorkspaceError:
    return WorkspaceError(
        f"the importer name {name!r} has two owners: {one} and {other}",
        place=Place(file="config.yaml", field="import"),
        remedy="Rename the profile, or remove the plug-in",
    )
