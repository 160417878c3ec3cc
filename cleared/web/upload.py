"""Bank files that are dropped on a page: recognised and put where ``cleared import`` puts them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from starlette.responses import Response

from cleared.errors import UsageError
from cleared.importing.handed_files import copy_to_drop_folder, sort_files
from cleared.safe_names import require_safe_name
from cleared.terminal import count_noun
from cleared.web.page import PageRequest


def take_files(page: PageRequest) -> Response:
    """Copy those that are bank files of known accounts into the drop folder; say why the others are left."""
    host = page.site.open_host()
    uploads = [each for each in page.form.files if each.filename]
    if not uploads:
        raise UsageError("no file was chosen", remedy="Choose a bank file.")
    limit = host.config.import_.max_bytes
    with tempfile.TemporaryDirectory() as folder:
        sources: list[Path] = []
        for number, upload in enumerate(uploads):
            name = require_safe_name(Path(upload.filename or "").name, "file")
            path = Path(folder) / str(number) / name
            path.parent.mkdir()
            data = upload.file.read(limit + 1)
            if len(data) > limit:
                raise UsageError(f"{name} is larger than {limit} bytes", remedy="See import.max_bytes in the settings.")
            path.write_bytes(data)
            sources.append(path)
        handed, left = sort_files(sources, host.config, host.decimal_places)
        names = copy_to_drop_folder(host.root, host.layout.import_dir, handed)
    for file in left:
        page.session.messages.append((f"{file.source.name} was left: {file.error}", False))
    done = f"{count_noun(len(names), 'file')} handed in: {', '.join(names)[:300]}" if names else ""
    return page.go_to("/", done)
