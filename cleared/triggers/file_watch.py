"""Watching folders: the system's hints that something may have changed in them.

Hints get lost (a network drive, a full queue in the kernel, a limit). So a hint only starts a scan, and the folders are
also scanned now and then without one.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from cleared.base.safe_files import describe_os_error
from cleared.workspace.watched_names import escape_name

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver, EventEmitter, ObservedWatch

POLL_SECONDS: Final = 1.0
_HINT_PAUSE: Final = 0.02
"""Seconds between two hints of the same kind: ten thousand files are a few hundred hints, not thirty thousand."""
_FALLBACK_NOTE: Final = "It is looked at every triggers.scan_seconds instead"
_LIMIT_NAMES: Final = {errno.ENOSPC: "max_user_watches", errno.EMFILE: "max_user_instances"}
# What can mean new content. Opening, reading and closing after reading cannot: a scan does that itself.
_EVENT_CLASSES: Final = (
    "FileCreatedEvent",
    "FileModifiedEvent",
    "FileAttribEvent",
    "FileMovedEvent",
    "FileClosedEvent",
    "FileDeletedEvent",
    "DirCreatedEvent",
    "DirAttribEvent",
    "DirMovedEvent",
    "DirDeletedEvent",
)

_WatchKey = tuple[str, bool]
"""What the system watches: a directory, and whether all beneath it too."""
_WatchRequest = tuple[str, bool, str]
"""What was asked for: the tag, whether all beneath too, the directory."""


class _ActiveWatch(Struct):
    watch: ObservedWatch
    emitter: EventEmitter
    identity: tuple[int, int]
    """Device and inode: a directory that was moved away is still watched, and the new one of its name is not."""
    partial: bool
    """Whether the system may have refused some of the directories beneath."""


class FolderWatcher:
    """Gives a hint when something may have changed in a folder; it does not say what."""

    def __init__(self, hint: Callable[[str], None], *, polling: bool = False) -> None:
        """``hint(tag)`` is called from the watcher's own thread, and must be cheap. Changes within some milliseconds
        make one hint. ``polling``: compare the folders every second instead of using the system's notifications, which
        network drives do not give."""
        self._hint = hint
        self._polling = polling
        self._polls = polling  # also where the system cannot tell
        self._guard = threading.RLock()  # never taken in the observer's threads: it is held while those are started
        self._requested: dict[tuple[str, bool], tuple[str, ...]] = {}
        self._watch_keys: dict[_WatchRequest, _WatchKey] = {}
        self._active: dict[_WatchKey, _ActiveWatch] = {}
        self._problems: dict[_WatchKey, str] = {}
        self._reported: set[str] = set()
        self._fallback = ""
        self._observer: BaseObserver | None = None
        self._thread: threading.Thread | None = None
        self._changes = threading.Condition()  # over the next two; nothing else is taken while it is held
        self._changed_keys: set[_WatchKey] = set()
        self._deleted_keys: set[_WatchKey] = set()
        self._closing = threading.Event()

    def set_directories(self, tag: str, directories: Iterable[Path], recursive: bool = True) -> list[str]:
        """Watch these directories under the tag, in place of those before (``recursive`` or not, apart).

        Call it again now and then: it is cheap, and watches again what is no longer watched. Where a directory does
        not exist, its nearest parent is watched until it appears. Scan a folder after this call, not before. Returns
        what cannot be watched, a line each; the same line only once.
        """
        with self._guard:
            self._requested[tag, recursive] = tuple(dict.fromkeys(os.path.realpath(d) for d in directories))
            requests = {(tag, recursive, path) for path in self._requested[tag, recursive]}
            if not requests:
                del self._requested[tag, recursive]
            for old in [
                request for request in self._watch_keys if request[:2] == (tag, recursive) and request not in requests
            ]:
                del self._watch_keys[old]
            if self._observer is None:
                return []
            for request in sorted(requests):
                self._watch_nearest(request)
            self._stop_unused_watches()
            lines = [self._fallback] if self._fallback else []
            lines += sorted(
                self._problems[key] for key in {self._watch_keys[request] for request in requests} & set(self._problems)
            )
            fresh = [line for line in lines if line not in self._reported]
            self._reported = (self._reported & {self._fallback, *self._problems.values()}) | set(fresh)
            return fresh

    def start(self) -> None:
        """Begin to give hints. Does nothing where that has begun."""
        with self._guard:
            if self._observer is not None:
                return
            # Its warnings would go to the terminal, where they are of no use.
            logging.getLogger("watchdog").addHandler(logging.NullHandler())
            self._observer = self._make_observer()
            self._observer.start()
            for (tag, recursive), paths in self._requested.items():
                for path in paths:
                    self._watch_nearest((tag, recursive, path))
            self._closing.clear()
            self._thread = threading.Thread(target=self._give_hints, name="watcher", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop giving hints; returns when the last one was given. Does nothing where it is closed already."""
        self._closing.set()
        with self._changes:
            self._changes.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._guard:
            if self._observer is not None:
                self._observer.stop()
                self._observer.join()
                self._observer = None
            for collection in (self._watch_keys, self._active, self._problems, self._changed_keys, self._deleted_keys):
                collection.clear()

    # -- hints --------------------------------------------------------------------------------------------------

    def _give_hints(self) -> None:
        while True:
            with self._changes:
                self._changes.wait_for(lambda: self._changed_keys or self._closing.is_set())
                changed, deleted = self._changed_keys.copy(), self._deleted_keys.copy()
                self._changed_keys.clear()
                self._deleted_keys.clear()
            if self._closing.is_set():
                return
            for tag in sorted(self._find_affected_tags(changed, deleted)):
                self._hint(tag)
            self._closing.wait(_HINT_PAUSE)

    def _find_affected_tags(self, changed: set[_WatchKey], deleted: set[_WatchKey]) -> set[str]:
        """The tags whose directories these are. A directory that appeared or disappeared is watched anew first, before
        any scan."""
        tags: set[str] = set()
        with self._guard:
            if self._observer is None:
                return tags
            for key in deleted & set(self._active):
                self._active[key].emitter.join(POLL_SECONDS)  # it is about to end by itself
                self._stop_watch(key)
            for request, key in list(self._watch_keys.items()):
                if key in changed:
                    self._watch_nearest(request)
                    # A change in a parent matters only when the directory itself has appeared.
                    if request[2] in (key[0], self._watch_keys[request][0]):
                        tags.add(request[0])
            self._stop_unused_watches()
        return tags

    def _make_handler(self, key: _WatchKey) -> FileSystemEventHandler:
        from watchdog.events import DirDeletedEvent, FileSystemEventHandler

        watcher = self

        class Handler(FileSystemEventHandler):
            def dispatch(self, event: FileSystemEvent) -> None:
                with watcher._changes:
                    watcher._changed_keys.add(key)
                    if isinstance(event, DirDeletedEvent) and event.src_path == key[0]:
                        watcher._deleted_keys.add(key)
                    watcher._changes.notify()

        return Handler()

    # -- watching -----------------------------------------------------------------------------------------------

    def _make_observer(self) -> BaseObserver:
        from watchdog.observers import Observer
        from watchdog.observers.polling import PollingObserver

        self._fallback = ""
        if self._polling:
            return PollingObserver(timeout=POLL_SECONDS)
        try:
            observer = Observer()
            why = "it has no means for that"
        except OSError as error:
            observer = PollingObserver(timeout=POLL_SECONDS)
            why = _describe_error(error)
        self._polls = isinstance(observer, PollingObserver)
        if self._polls:
            self._fallback = (
                f"the system cannot tell of changes in folders: {why}. "
                f"They are looked at every {POLL_SECONDS:g} s instead, which costs more"
            )
        return observer

    def _watch_nearest(self, request: _WatchRequest) -> None:
        """Watch the directory; where it does not exist, the nearest one above it."""
        _, recursive, path = request
        key = _nearest_directory(path, recursive)
        self._start_watch(key)
        while (now := _nearest_directory(path, recursive)) != key:  # it appeared, or disappeared, meanwhile
            key = now
            self._start_watch(key)
        self._watch_keys[request] = key

    def _start_watch(self, key: _WatchKey) -> None:
        path, recursive = key
        try:
            status = Path(path).stat()
            identity = status.st_dev, status.st_ino
            active = self._active.get(key)
            if active and active.emitter.is_alive() and active.identity == identity and not active.partial:
                return
            self._stop_watch(key)
            with os.scandir(path) as entries:  # the observer would pass over one that cannot be read
                nested = any(entry.is_dir(follow_symlinks=False) for entry in entries)
            watch, emitter = self._schedule_watch(key)
            self._active[key] = _ActiveWatch(watch, emitter, identity, partial=False)
        except FileNotFoundError:
            return
        except OSError as error:
            self._problems[key] = f"{escape_name(path)} cannot be watched: {_describe_error(error)}. {_FALLBACK_NOTE}"
            return
        self._problems.pop(key, None)
        if nested and recursive and (refusal := self._find_system_limit()):
            self._active[key].partial = True
            self._problems[key] = f"not all of {escape_name(path)} may be watched: {refusal}. {_FALLBACK_NOTE}"

    def _find_system_limit(self) -> str:
        """Why the system would refuse to watch one more directory; empty where it would not.

        The observer does not say so when that happens beneath a directory.
        """
        key = (os.sep, False)
        if not self._polls and key not in self._active:
            try:
                watch, _ = self._schedule_watch(key)
            except OSError as error:
                return _describe_error(error)
            assert self._observer is not None
            self._observer.unschedule(watch)
        return ""

    def _schedule_watch(self, key: _WatchKey) -> tuple[ObservedWatch, EventEmitter]:
        from watchdog import events

        assert self._observer is not None
        # The same events for all, as two watches of one directory share one watch of the system.
        kinds: list[type[FileSystemEvent]] = [getattr(events, name) for name in _EVENT_CLASSES if hasattr(events, name)]
        watch = self._observer.schedule(self._make_handler(key), key[0], recursive=key[1], event_filter=kinds)
        return watch, next(emitter for emitter in self._observer.emitters if emitter.watch == watch)

    def _stop_watch(self, key: _WatchKey) -> None:
        active = self._active.pop(key, None)
        if active is not None and self._observer is not None:
            self._observer.unschedule(active.watch)

    def _stop_unused_watches(self) -> None:
        """Stop watching what is no longer asked for."""
        needed = set(self._watch_keys.values())
        for key in [key for key in self._active if key not in needed]:
            self._stop_watch(key)
        for key in [key for key in self._problems if key not in needed]:
            del self._problems[key]


def _nearest_directory(path: str, recursive: bool) -> _WatchKey:
    """The directory itself, or the nearest above it that exists."""
    nearest = Path(path)
    while not nearest.is_dir() and nearest.parent != nearest:
        nearest = nearest.parent
    return str(nearest), recursive and str(nearest) == path


def _describe_error(error: OSError) -> str:
    limit = _LIMIT_NAMES.get(error.errno or 0)
    if limit is None:
        return describe_os_error(error)
    return f"a limit of the system is reached (fs.inotify.{limit}; raise it with sysctl)"
