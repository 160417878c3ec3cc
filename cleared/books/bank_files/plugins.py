"""Which importers there are: the built-in ones, the configuration's profiles, the plug-ins it switches on."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, cast

from cleared.base.errors import Place, WorkspaceError
from cleared.books.bank_files.base import Importer, Sample
from cleared.books.bank_files.chase import find_last4_in_name
from cleared.workspace.plugin_group import ANY_NAME, PluginGroup
from cleared.workspace.settings.model import Config

PLUGINS = PluginGroup("importer", "cleared.importers", "import.plugins", ANY_NAME)
BUILT_IN: Final = {
    "chase_checking": "chase:ChaseChecking",
    "chase_card": "chase:ChaseCard",
    "ofx": "ofx:Ofx",
    "camt": "camt:Camt",
    "mt940": "mt940:Mt940",
    "qif": "qif:Qif",
    "qif_mdy": "qif:QifMonthFirst",
    "qif_dmy": "qif:QifDayFirst",
}
"""Name → module and class, imported when it is used: most files are of one format."""
_BEGINNINGS: Final = {"ofx": "<Oo", "camt": "<", "qif": "!#", "qif_mdy": "!#", "qif_dmy": "!#"}
"""What the files of some of them begin with; plug-ins say it themselves (``Importer``)."""
_PARTS: Final = {"mt940": ":20:"}
"""What files of the others have somewhere."""
STATEMENT_FORMATS = ("ofx", "camt", "mt940", "qif", "qif_mdy", "qif_dmy")
"""Built-in formats that no bank owns; most state the account's number."""
NAME_READERS = (find_last4_in_name,)
"""``(file name, format) → last four digits`` for banks that name their files after the account."""


def load_format(name: str) -> Any:
    """The class of a built-in format."""
    module, _, kind = BUILT_IN[name].partition(":")
    return getattr(import_module(f"cleared.books.bank_files.{module}"), kind)


def load_importers(config: Config, sample: Sample, format: str | None = None) -> dict[str, Importer]:
    """The importers by name; of the built-in ones only that which is named, or those whose files may begin as the
    sample does. Raises ``WorkspaceError`` for a missing plug-in or a name with two owners.

    Entry points are looked up only where ``import.plugins`` names one that is not built in: the look-up
    reads the metadata of every installed package.
    """
    settings = config.import_
    if format is None:
        possible = [name for name in BUILT_IN if sample.first in _BEGINNINGS.get(name, sample.first)]
        kinds = [load_format(name) for name in possible if _PARTS.get(name, "") in sample.text]
    else:
        kinds = [load_format(format)] if format in BUILT_IN else []
    importers: dict[str, Importer] = {kind.name: kind(settings.max_rows) for kind in kinds}
    owners = dict.fromkeys(BUILT_IN, "cleared itself")
    if settings.profiles:
        from cleared.books.bank_files.csv_profile import ProfileImporter  # late: most workspaces describe no format
    for name, profile in settings.profiles.items():
        if name in owners:
            raise _duplicate_name_error(name, owners[name], "a profile")
        importers[name] = ProfileImporter(profile, settings.max_rows)
        owners[name] = "a profile"
    for name in dict.fromkeys(settings.plugins):
        if name in BUILT_IN:
            continue
        if name in owners:
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
