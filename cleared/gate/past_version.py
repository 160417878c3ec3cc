"""A workspace as it was at a commit: the settings in force then, and the scripts that counted then."""

from __future__ import annotations

import copy
from pathlib import Path

from cleared.base.errors import Place, PolicyError
from cleared.base.money import currency_exponent
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.git import Snapshot
from cleared.runs.approved_scripts import Script, Scripts
from cleared.trust.approval_record import CONFIG, digest_of, record_path, try_parse_record
from cleared.trust.verification import Verification
from cleared.workspace.location import CONFIG_NAME, Layout
from cleared.workspace.sealed_files import FOLDER as SEALED
from cleared.workspace.settings.loading import read_valid_part
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.protected_settings import with_protected_settings
from cleared.workspace.template import was_shipped


class PastScripts(Scripts):
    """The scripts of a commit, as far as they counted when it was made: what was replaced or taken back since counts,
    for it is run only to see what it did."""

    def load_agent(self, name: str) -> Script:
        file = self.host.layout.agent_path(name)
        data = self.snapshot.read_file(file)
        if data is None:
            raise PolicyError(f"there was no agent {name!r} then", place=Place(file))
        return self._load_approved(name, file, data, "agent", self.require_approved(file, name, data))

    def require_approved(self, file: str, name: str, data: bytes) -> Verification:
        """What let these bytes run then. Raises ``PolicyError`` where nobody who counts here had approved them."""
        digest = digest_of(data)
        record = try_parse_record(self.approvals.source.read(record_path(file, digest)))
        if record is not None and (record.kind, record.path, record.digest) == ("script", file, digest):
            if self.approvals.may_have_approved(record):
                return Verification("approved", f"approved by {record.by} on {record.at[:10]}", record)
        elif was_shipped(file, data):
            return Verification("starter", "it came with the program")
        raise PolicyError(
            f"nobody whose approvals count here had approved {file} as it was then; it is not run",
            place=Place(file),
            remedy="Look at who did (cleared agent history), and say whom you trust: cleared trust.",
        )


def open_past_host(host: Host, snapshot: Snapshot, folder: Path) -> Host:
    """The workspace with the settings of a commit. ``folder``: an empty one, where its drop folder and its state lie,
    so that nothing of today is read or changed; but for what is kept, sealed, of files by their ids, which is read."""
    source = CommittedSource(snapshot)
    config = read_valid_part((source.read(CONFIG_NAME) or b"").decode("utf-8", "replace"), CONFIG_NAME).config
    record = try_parse_record(source.read(CONFIG))
    if record is not None:
        config = with_protected_settings(config, record.policy)
    past = copy.copy(host)
    past.config, past.layout = config, Layout(folder, config)
    if not (state := past.layout.state_dir).exists():
        state.mkdir()
        (state / SEALED).symlink_to(host.layout.state_dir.absolute() / SEALED)  # nothing is written through a link
    past.show_message, past.on_step, past.on_call, past.on_ended = _ignore, None, None, None
    past.reread_policy, past.decimal_places = None, _count_places(config)
    return past


def _count_places(config: Config) -> int:
    return currency_exponent(config.business.currency)


def _ignore(text: str) -> None:
    return None
