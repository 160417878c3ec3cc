"""Which events have had their run, read from the attestations (``.cleared/consumed.db`` is an index of them); and
what a commit holds for agents that listen for events: the events it emits, the files it handled, and trailers.

``logs/events-YYYY-MM.jsonl`` has a line for each event that a script emits, and ``logs/files-YYYY-MM.csv`` a row for
each file outside of ``import/`` that an agent has had, by the month of the run. Earlier versions wrote
``logs/events.jsonl`` and ``logs/files.csv`` for all months: they are read, too. The program's own events (a run ended,
a card was resolved …) have no line: they are read from the commit's trailers where an agent listens for them.
"""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.csv_text import format_record
from cleared.base.errors import PolicyError, WorkspaceError
from cleared.base.file_source import FileSource, list_dated
from cleared.base.json_values import parse_json_object
from cleared.base.last_values import LastValues
from cleared.base.short_text import parse_count
from cleared.cards.card import Card
from cleared.cards.kinds import QUESTION
from cleared.changes import attestation
from cleared.changes.attestation_lines import Attestation, added_lines, list_shards
from cleared.changes.host import Host
from cleared.changes.taken_over import Counting, list_counting
from cleared.git import Repository, Snapshot, find_clone_id
from cleared.primitives.context import Context, taken_files
from cleared.sandbox.trigger_kinds import ON_DEMAND, WEBHOOK
from cleared.workspace.database import can_write, connect_in_memory, connect_to_write
from cleared.workspace.location import Layout

ASKS: Final = "asks"
FAILED: Final = "failed"
"""``Outcome:`` of an attempt without a commit of its own: it waits for an answer, or it failed."""
WENT_ON: Final = "Went-On"
"""The trailer of a run's commit with the questions that the run continued from, or asked again. Each is used once."""
KEY_TRAILER: Final = "Once"
"""The trailer of a decision that is made once: the key that whoever asked for it has given."""
_OLD_KEY_TRAILER: Final = "Key"
"""What earlier versions called it: in a commit that is the trailer of who has signed, which no attestation has."""
INDEX: Final = "consumed.db"
_VERSION: Final = 6
_WORTH: Final = 16
"""Lines that came since, from which on they are written."""
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS head (commit_id TEXT NOT NULL, counting TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS acts (
  run TEXT, agent TEXT, kind TEXT, key TEXT, outcome TEXT, depth INTEGER,
  UNIQUE (run, agent, kind, key, outcome));
CREATE INDEX IF NOT EXISTS by_key ON acts (agent, key);
CREATE TABLE IF NOT EXISTS cards (
  card TEXT, what TEXT, digest TEXT, PRIMARY KEY (card, what, digest)) WITHOUT ROWID;
"""
"""``head``: as of which commit, and whose attestations for which books counted."""
_DONE: Final = """(a.outcome='' OR (a.outcome='asks' AND NOT EXISTS (
  SELECT 1 FROM acts f WHERE f.run=a.run AND f.agent=a.agent AND f.key=a.key AND f.outcome='failed')))"""
"""A run succeeded, or waits for an answer. The order of lines does not matter: a merge of two clones may change it."""


class AlreadyRun(PolicyError):
    """The event's key is consumed: a run of this agent for it has made its commit, or waits for an answer."""


def is_consumed(host: Host, repo: Repository, snapshot: Snapshot, agent: str, key: str, *, asking: bool = True) -> bool:
    """Whether ``agent`` has had its run for this event, as of the snapshot's commit.

    ``asking``: a run that waits for an answer counts too.
    """
    condition = _DONE if asking else "a.outcome=''"
    with _open_index(host, repo, snapshot) as db:
        row = db.execute(f"SELECT 1 FROM acts a WHERE agent=? AND key=? AND {condition}", (agent, key)).fetchone()
    return row is not None


def find_keyed_decision(host: Host, repo: Repository, snapshot: Snapshot, key: str) -> str | None:
    """The id of the decision that was made with this key; ``None`` where none was."""
    with _open_index(host, repo, snapshot) as db:
        row = db.execute("SELECT run FROM acts WHERE agent='' AND kind=? AND key=?", (KEY_TRAILER, key)).fetchone()
    return str(row[0]) if row is not None else None


def read_decision_key(trailers: Mapping[str, str]) -> str:
    """The key with which a decision was made, by the trailers in its attestation; empty where it has none."""
    return trailers.get(KEY_TRAILER) or trailers.get(_OLD_KEY_TRAILER, "")


def attempted_keys(host: Host, repo: Repository, snapshot: Snapshot, agent: str) -> set[str]:
    """The keys of all events for which an agent had a run, failed runs too."""
    with _open_index(host, repo, snapshot) as db:
        return {key for (key,) in db.execute("SELECT DISTINCT key FROM acts WHERE agent=?", (agent,))}


def has_committed(host: Host, repo: Repository, snapshot: Snapshot, run: str) -> bool:
    """Whether a run has made its commit."""
    with _open_index(host, repo, snapshot) as db:
        return db.execute("SELECT 1 FROM acts WHERE run=? AND outcome=''", (run,)).fetchone() is not None


def event_depth(host: Host, repo: Repository, snapshot: Snapshot, run: str) -> int:
    """How many events led to a run, one after the other; 0 where the run is not known."""
    with _open_index(host, repo, snapshot) as db:
        return int(db.execute("SELECT coalesce(max(depth), 0) FROM acts WHERE run=?", (run,)).fetchone()[0])


def has_continued(host: Host, repo: Repository, snapshot: Snapshot, card: str) -> bool:
    """Whether a run has continued from this question."""
    with _open_index(host, repo, snapshot) as db:
        row = db.execute("SELECT 1 FROM cards WHERE card=? AND what='went_on'", (card,)).fetchone()
    return row is not None


def is_only_failure(host: Host, repo: Repository, snapshot: Snapshot, agent: str, key: str) -> bool:
    """Whether this event is the only one for which runs of ``agent`` failed, and that has not had its run since."""
    with _open_index(host, repo, snapshot) as db:
        rows = db.execute(
            "SELECT DISTINCT key FROM acts f WHERE agent=? AND outcome='failed' AND kind<>? AND NOT EXISTS"
            f" (SELECT 1 FROM acts a WHERE a.agent=f.agent AND a.key=f.key AND {_DONE}) LIMIT 2",
            (agent, ON_DEMAND.name),
        )
        return [failed for (failed,) in rows] == [key]


def latest_keys(host: Host, repo: Repository, snapshot: Snapshot, kind: str) -> dict[str, str]:
    """Agent → the greatest key among its events of this kind that had a run, failed runs too."""
    with _open_index(host, repo, snapshot) as db:
        return dict(db.execute("SELECT agent, max(key) FROM acts WHERE kind=? GROUP BY agent", (kind,)).fetchall())


def was_opened(host: Host, repo: Repository, snapshot: Snapshot, card: Card) -> bool:
    """Whether a run or decision attests that it opened this card, just as it is."""
    return not find_unopened_cards(host, repo, snapshot, [card])


def find_unopened_cards(host: Host, repo: Repository, snapshot: Snapshot, cards: Collection[Card]) -> list[Card]:
    """Of what lines say that open these cards, that which no run or decision attests."""
    query = "SELECT card, digest FROM cards WHERE what='opens' AND card IN (SELECT value FROM json_each(?))"
    counting = attestation.find_counting(host, snapshot)
    vouched = _list_vouched(host, repo, snapshot, counting) if host.reads_again else {}
    unknown = [card for card in cards if vouched.get(card.id) is not card or card.rivals]
    asked = [each for card in unknown for each in (card, *card.rivals) if vouched.get(each.id) is not each]
    unopened: list[Card] = []
    if asked:
        with _open_index(host, repo, snapshot, counting) as db:
            opened = set(db.execute(query, (json.dumps([card.id for card in asked]),)))
        unopened = [card for card in asked if (card.id, attestation.opening_digest(card)) not in opened]
    if asked or len(vouched) > _MAX_VOUCHED:
        doubtful = {id(card) for card in unopened}
        found = {card.id: card for card in (*cards, *asked) if id(card) not in doubtful}
        vouched = {**vouched, **found} if len(vouched) + len(asked) <= _MAX_VOUCHED else found
    if host.reads_again:  # of this commit, so that the next one is near it
        _vouched.keep(host.root, _Vouched(snapshot.commit or "", counting, vouched))
    return unopened


class _Vouched(Struct, frozen=True):
    """Cards that were attested as of a commit, as they are: by those who counted then."""

    commit: str
    counting: Counting
    cards: Mapping[str, Card]


_MAX_VOUCHED: Final = 20_000
_vouched: Final = LastValues[_Vouched](_MAX_VOUCHED, lambda vouched: len(vouched.cards))
"""What this process found last in each workspace."""


def _list_vouched(host: Host, repo: Repository, snapshot: Snapshot, counting: object) -> Mapping[str, Card]:
    """The cards of which this process knows that they are attested: what was attested stays so while the attestations
    do, and the same machines count."""
    known = _vouched.find(host.root)
    if known is None or known.counting != counting:
        return {}
    is_kept = known.commit == (snapshot.commit or "") or (
        repo.has_in_history(known.commit) and _keeps_attestations(Snapshot(repo, known.commit), snapshot)
    )
    return known.cards if is_kept else {}


def find_unattested_cards(host: Host, repo: Repository, snapshot: Snapshot, cards: Mapping[str, Card]) -> list[Card]:
    """Resolved cards whose answer no run or decision attests; questions are left out."""
    query = "SELECT card, digest FROM cards WHERE what='settles' AND card IN (SELECT value FROM json_each(?))"
    with _open_index(host, repo, snapshot) as db:
        counted = set(db.execute(query, (json.dumps(list(cards)),)))
    return [
        card
        for card in cards.values()
        if card.status == "resolved"
        and card.kind != QUESTION.name
        and (card.id, attestation.settlement_digest(card.resolved_by or "", card.resolution or "")) not in counted
    ]


@contextmanager
def _open_index(
    host: Host, repo: Repository, snapshot: Snapshot, counting: Counting | None = None
) -> Iterator[sqlite3.Connection]:
    """The index as of the snapshot's commit: of what counts in these books on this machine. Where the disk takes none,
    it is made in memory."""
    path, db, counting = host.layout.state_dir / INDEX, None, counting or attestation.find_counting(host, snapshot)
    if can_write(path):
        with suppress(WorkspaceError, sqlite3.OperationalError):  # a full disk
            db = _bring_up(connect_to_write(path, _SCHEMA, _VERSION), repo, snapshot, counting)
    db = db or _bring_up(connect_in_memory(_SCHEMA), repo, snapshot, counting)
    try:
        yield db
    finally:
        db.close()


def _bring_up(db: sqlite3.Connection, repo: Repository, snapshot: Snapshot, counting: Counting) -> sqlite3.Connection:
    try:
        now = (snapshot.commit or "", json.dumps([sorted(counting.keys), sorted(counting.books)]))
        known = db.execute("SELECT commit_id, counting FROM head").fetchone()
        if known != now:
            before = None
            if known is not None and known[1] == now[1] and repo.has_in_history(known[0]):
                before = Snapshot(repo, known[0])
            if before is None or not _keeps_attestations(before, snapshot):
                before = None
                db.execute("DELETE FROM acts")
                db.execute("DELETE FROM cards")
            lines = list(added_lines(before, snapshot))
            for _, said in list_counting(snapshot, lines, counting):
                _add_attestation(db, said)
            db.execute("DELETE FROM head")
            db.execute("INSERT INTO head VALUES (?,?)", now)
            if before is None or len(lines) >= _WORTH:
                db.commit()  # few are only seen by who asks now: to write them takes longer than to read them again
    except BaseException:
        db.close()
        raise
    return db


def _keeps_attestations(before: Snapshot, after: Snapshot) -> bool:
    """Whether every attestation of ``before`` is still in ``after``."""
    return next(added_lines(after, before), None) is None and bool(list_shards(before))


def _add_attestation(db: sqlite3.Connection, said: Attestation) -> None:
    trailers = said.trailers
    event, agent = trailers.get("Event") or trailers.get("Attempt"), trailers.get("Agent")
    if agent is None or event is None:
        key = read_decision_key(trailers)
        kind, outcome = KEY_TRAILER if key else "", "decision"
    else:
        kind, _, key = event.partition(" ")
        outcome = "" if "Event" in trailers else ASKS if trailers.get("Outcome") == ASKS else FAILED
    run, depth = trailers.get("Run") or trailers.get("Decision") or "", trailer_number(trailers, DEPTH)
    db.execute("INSERT OR IGNORE INTO acts VALUES (?,?,?,?,?,?)", (run, agent or "", kind, key, outcome, depth))
    cards = [(card, "went_on", "") for card in trailers.get(WENT_ON, "").split()]
    for what in ("opens", "settles"):
        cards += [(card, what, str(digest)) for card, digest in (said.statement.get(what) or {}).items()]
    db.executemany("INSERT OR IGNORE INTO cards VALUES (?,?,?)", cards)


def trailer_number(trailers: Mapping[str, str], key: str) -> int:
    """The number in a trailer; 0 where there is none."""
    return parse_count(trailers.get(key)) or 0


ORIGIN: Final = "Origin"
"""The clone that made the commit; other clones deliver none of its events."""
EMITS: Final = "Emits"
IMPORTS: Final = "Imports"
RESOLVES: Final = "Resolves"
DEPTH: Final = "Depth"
DATA: Final = "Data"
_MAX_DATA: Final = 2_000
FILES_HEADER: Final = ("sha256", "agent", "file", "run")


def format_event(run: str, number: int, agent: str, now: datetime, name: str, payload: Any) -> str:
    """One emitted event, as its line in the file of its month."""
    return event_line(
        {"id": f"{run}/{number}", "run": run, "agent": agent, "at": format_iso(now), "name": name, "payload": payload}
    )


def event_line(event: Mapping[str, Any]) -> str:
    """The line of an event."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"), default=str) + "\n"


def payload_trailer(event: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The trailer with the payload that a person or a call gave a run, so that it can be repeated; other events need
    none."""
    if event["kind"] not in (ON_DEMAND.name, WEBHOOK.name) or event["payload"] is None:
        return []
    text = json.dumps(event["payload"], ensure_ascii=True, separators=(",", ":"), default=str)
    return [(DATA, text)] if len(text) <= _MAX_DATA else []


def iter_emitted_events(source: FileSource) -> Iterator[dict[str, Any]]:
    """The events that scripts emitted, newest first; lines that cannot be read are left out. A file is read once its
    events are asked for."""
    for path in reversed(list_dated(source, Layout.events)):
        for text in reversed((source.read(path) or b"").splitlines()):
            event = parse_json_object(text)
            if event.keys() >= {"id", "run", "name", "payload"}:
                yield event


def commit_trailers(repo: Repository, context: Context) -> list[tuple[str, str]]:
    """The trailers with which a commit tells what is in it."""
    counts = (
        (EMITS, len(context.events)),
        (IMPORTS, len(taken_files(context))),
        (RESOLVES, len(context.cards.resolved)),
        (DEPTH, context.event.get("depth", 0)),
    )
    trailers = [(key, str(count)) for key, count in counts if count]
    return [*trailers, (ORIGIN, find_clone_id(repo, make=True) or "")]


def handled_files(host: Host, context: Context) -> list[tuple[str, str, str, str]]:
    """Rows for the files that the run was for and that stay where they are, outside of ``import/``."""
    folder = f"{host.layout.import_dir}/"
    return [
        (digest, context.agent, path, context.run_id)
        for path, digest in context.event.get("files", ())
        if not path.startswith(folder)
    ]


def append_handled_files(data: bytes | None, rows: list[tuple[str, str, str, str]]) -> bytes:
    """A file of files that agents have had, with these rows at its end."""
    before = data if data is not None else format_record(FILES_HEADER).encode()
    return before + "".join(format_record(row) for row in rows).encode("utf-8")


def files_handled_by(source: FileSource, agent: str) -> dict[str, str]:
    """SHA-256 → path, of the files for which the agent has had a run, in whatever month."""
    found: dict[str, str] = {}
    for path in list_dated(source, Layout.imported_files):
        rows = csv.reader(io.StringIO((source.read(path) or b"").decode("utf-8", "replace"), newline=""))
        found |= {row[0]: row[2] for row in rows if len(row) == len(FILES_HEADER) and row[1] == agent}
    return found
