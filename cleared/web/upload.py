"""Files that are dropped on a page: bank files go where ``cleared import`` puts them, receipts are kept at once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from starlette.responses import Response

from cleared.base.errors import ClearedError, UsageError
from cleared.base.safe_names import mend_name
from cleared.base.short_text import list_first, quote_name
from cleared.base.temporary_folders import open_temporary_folder
from cleared.base.terminal import count_noun
from cleared.books.books_domain import PAGE_ACTOR
from cleared.books.decisions.bank_adding import is_describable
from cleared.books.decisions.receipt_filing import copy_to_inbox, file_inbox
from cleared.books.importing.handed_files import LeftFile, copy_to_drop_folder, find_readers, sort_files
from cleared.books.receipt_list import list_receipts
from cleared.changes.host import Host
from cleared.runs import run_queries
from cleared.service.operations import agent_operations
from cleared.web.access import Said
from cleared.web.long_work import Finish, Work
from cleared.web.page import PageRequest
from cleared.web.unknown_files import UnknownFile
from cleared.web.work_pages import answer_when_done
from cleared.workspace.process_lock import find_running_service

RECEIPT_ENDINGS: Final = frozenset({".pdf", ".jpg", ".jpeg", ".png", ".heic", ".webp", ".eml"})
"""Files that no bank gives out."""
_NAMED: Final = 10
"""Files of one upload that a message names."""


def take_files(page: PageRequest) -> Response:
    """Copy bank files of known accounts into the drop folder, and keep receipts; say why others are left. Where it is
    asked for, the agents that read the bank files run then."""
    host = page.site.open_host()
    uploads = [each for each in page.form.files if each.filename]
    if not uploads:
        raise UsageError("no file was chosen", remedy="Choose a bank file.")
    limit = host.config.import_.max_bytes
    kept = ExitStack()
    folder = kept.enter_context(open_temporary_folder("upload"))
    try:
        sources: list[Path] = []
        for number, upload in enumerate(uploads):
            name = mend_name(Path(upload.filename or "").name, "file")
            path = folder / str(number) / name
            path.parent.mkdir()
            data = upload.file.read(limit + 1)
            if len(data) > limit:
                raise UsageError(f"{name} is larger than {limit} bytes", remedy="See import.max_bytes in the settings.")
            path.write_bytes(data)
            sources.append(path)

        way, entry = page.form.get("way"), page.form.get("entry")

        def recognise(work: Work) -> Finish:
            receipts = [path for path in sources if way == "receipt" or path.suffix.lower() in RECEIPT_ENDINGS]
            with kept:
                handed, left = sort_files([p for p in sources if p not in receipts], host.config, host.decimal_places)
                unknown, lost = _keep_unknown_files(page, host, left)
                names = copy_to_drop_folder(host.root, host.layout.import_dir, handed)
                filed, lines = _keep_receipts(host, receipts)
            asked = {each.name for each in unknown}  # their own page says what is to be known
            lines += [Said(file.describe(), ok=False) for file in left if file.source.name not in asked]
            lines += [Said(_describe_lost(lost), ok=False)] if lost else []
            if names:
                shown = list_first(list(map(quote_name, names)), _NAMED)
                lines.append(Said(f"{count_noun(len(names), 'file')} handed in: {shown}"))
                if way == "import" and find_running_service(host.layout.state_dir) is None:
                    host.on_call = work.count_call
                    lines += import_files(host, names)
            unknown_pages = [f"/bank/files/{quote(each.id)}" for each in unknown]
            more = f"?{urlencode({'entry': entry})}" if entry else ""
            receipt_pages = [f"/receipts/{digest}{more}" for digest in filed]
            begin = "/" if way != "receipt" else f"/books/entries/{quote(entry)}" if entry else "/receipts"
            return lambda asking: _show_outcome(asking, lines, unknown_pages, receipt_pages, begin)

        work = page.site.work.begin(f"Looking at {', '.join(path.name for path in sources)[:100]}", recognise)
    except BaseException:
        kept.close()
        raise
    return answer_when_done(page, work)


def import_files(host: Host, names: Sequence[str]) -> Iterator[Said]:
    """Run each agent that reads files of these names, and say what it did."""
    paths = [f"{host.layout.import_dir}/{name}" for name in names]
    for agent in find_readers(run_queries.read_agents(host), paths):
        try:
            outcome = agent_operations.run_agent(host, agent, False, None, None)
        except ClearedError as error:
            yield Said(f"{agent}: {error}", ok=False)
            continue
        if failure := outcome["error"]:
            yield Said(f"{agent}: {failure['message']}. {failure['remedy'] or ''}".strip(), ok=False)
            continue
        cards = len(outcome["cards"])
        booked = sum(entry["status"] != "pending-review" for entry in outcome["entries"])
        yield Said(f"{booked} booked, {cards} for you")


def _keep_unknown_files(
    page: PageRequest, host: Host, left: Sequence[LeftFile]
) -> tuple[list[UnknownFile], list[UnknownFile]]:
    """Keep those of which somebody can say what they are; with the older ones that are not kept any more."""
    found, before = [], page.site.unknown_files.list_files()
    for each in left:
        data = each.source.read_bytes()
        if is_describable(host, each.source.name, data):
            found.append(page.site.unknown_files.keep(each.source.name, data, each.describe()))
    kept = {each.id for each in page.site.unknown_files.list_files()}
    return [each for each in found if each.id in kept], [each for each in [*before, *found] if each.id not in kept]


def _describe_lost(files: Sequence[UnknownFile]) -> str:
    names = list_first([quote_name(each.name) for each in files], _NAMED)
    return f"not kept any more, as newer files took the place: {names}. Say what those kept are, then hand it in again"


def _keep_receipts(host: Host, paths: Sequence[Path]) -> tuple[list[str], list[Said]]:
    """Keep receipts at once, with all that lies in their inbox; what is damaged is refused. The digests of those that
    are kept then."""
    lines, digests, limit = [], list[str](), host.config.receipts.max_bytes
    kept = {each["sha256"] for each in list_receipts(host)["receipts"] if each["is_here"]}
    for path in paths:
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        if digest in kept:
            digests.append(digest)
            lines.append(Said(f"{quote_name(path.name)} is kept already"))
            continue
        try:
            if len(data) > limit:
                raise UsageError(f"it is larger than {limit} bytes", remedy="See receipts.max_bytes in the settings.")
            copy_to_inbox(host.root, path.name, data)
        except ClearedError as error:
            lines.append(
                Said(f"{quote_name(path.name)} was not kept: {error.message}. {error.remedy or ''}".strip(), ok=False)
            )
        else:
            digests.append(digest)
    if kept.issuperset(digests):
        return digests, lines
    done = file_inbox(host, by=PAGE_ACTOR)
    lines += [Said(f"{quote_name(name)} was not kept: {why}", ok=False) for name, why in done.refused]
    filed = {each.receipt.sha256 for each in done.filed if each.receipt.sha256 in digests}
    if filed:
        lines.append(Said(f"{count_noun(len(filed), 'receipt')} kept"))
    return [each for each in dict.fromkeys(digests) if each in {*kept, *filed}], lines


def _show_outcome(
    page: PageRequest, lines: Sequence[Said], unknown: Sequence[str], filed: Sequence[str], begin: str
) -> Response:
    """The page of the one thing that was handed in, where it has one; else that of all such, or where it ``begin``s."""
    page.session.messages += lines
    if unknown:
        return page.go_to(unknown[0] if len(unknown) == 1 else "/bank")
    return page.go_to(filed[0] if len(filed) == 1 else "/receipts" if filed else begin)
