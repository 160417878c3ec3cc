"""Where dropped files and calls of webhooks lie until a worker has put them into the books: a directory, or what speaks
S3's protocol.

A file is named by its digest, so that it is there before its job is, and once.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import write_atomic

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_DIRECTORY: Final = "file://"
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class FileStore:
    """``url``: a ``file://`` URL, or one of obstore's: ``s3://BUCKET/PREFIX``. Keys for that come from the environment
    (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL)."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._store = _open_store(url)

    def put_file(self, data: bytes, folder: str = "") -> str:
        """Keep the content; its digest. In a directory it is on the disk when this returns. Raises ``WorkspaceError``
        where the store does not take it."""
        import obstore

        digest = hashlib.sha256(data).hexdigest()
        try:
            if self._url.startswith(_DIRECTORY):
                write_atomic(Path(self._url.removeprefix(_DIRECTORY)) / folder / digest, data)
            else:
                obstore.put(self._store, _join(folder, digest), data)
        except (obstore.exceptions.BaseError, OSError) as error:
            raise self._explain(error) from None
        return digest

    def list_files(self, folder: str) -> list[str]:
        """The digests of what lies in a folder, in the order in which it was put there."""
        import obstore

        try:
            found = [each for part in obstore.list(self._store, folder) for each in part]
        except (obstore.exceptions.BaseError, OSError) as error:
            raise self._explain(error) from None
        names = [(each["last_modified"], each["path"].rpartition("/")[2]) for each in found]
        return [name for _, name in sorted(names) if _DIGEST.fullmatch(name)]

    def remove_file(self, digest: str, folder: str) -> None:
        """Forget a file, also where it is not there, and where it is none of this store's."""
        import obstore

        if _DIGEST.fullmatch(digest) is None:  # somebody wrote that into the database
            return
        try:
            obstore.delete(self._store, _join(folder, digest))
        except FileNotFoundError:
            pass
        except (obstore.exceptions.BaseError, OSError) as error:
            raise self._explain(error) from None

    def read_file(self, digest: str, folder: str = "") -> bytes:
        """Raises ``WorkspaceError`` where it is not there, or another content than its name says."""
        import obstore

        if _DIGEST.fullmatch(digest) is None:
            raise WorkspaceError(
                f"{digest[:80]!r} is no digest of a file", remedy="Look who has changed the fleet's database."
            )
        try:
            data = bytes(obstore.get(self._store, _join(folder, digest)).bytes())
        except (obstore.exceptions.BaseError, OSError) as error:
            raise self._explain(error) from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise WorkspaceError(
                "the file has another content than the one that was dropped",
                place=Place(f"{self._url}/{_join(folder, digest)}"),
                remedy="Look at who can write to the store. Drop the file again: cleared fleet drop.",
            )
        return data

    def _explain(self, error: Exception) -> WorkspaceError:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return WorkspaceError(
            f"the store of dropped files cannot be used: {reason}",
            place=Place(self._url),
            remedy="Look whether it can be reached from here, with the keys in the environment.",
        )


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _open_store(url: str) -> ObjectStore:
    from obstore.exceptions import BaseError
    from obstore.store import LocalStore, from_url

    try:
        if url.startswith(_DIRECTORY):
            return LocalStore(Path(url.removeprefix(_DIRECTORY)), mkdir=True)
        return from_url(url)
    except (BaseError, OSError, ValueError) as error:
        raise WorkspaceError(
            f"this is no store of files: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
            place=Place(url),
            remedy="Give a directory, or a URL such as s3://BUCKET/PREFIX.",
        ) from None
