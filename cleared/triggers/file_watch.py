"""Having the system tell that something may have happened in a folder: a hint, never more.

Hints get lost (a network drive, a full queue in the kernel, a limit), so whoever is told looks for himself, and looks
now and then without having been told.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cleared.safe_files import describe_os_error
from cleared.workspace.drop_names import escape_name

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver, EventEmitter, ObservedWatch

POLL_SECONDS: Final = 1.0
_HINT_PAUSE: Final = 0.02
"""Seconds between two hints of the same kind: ten thousand files are a few hundred hints, not thirty thousand."""
_FALLBACK_NOTE: Final = "It is looked at every triggers.scan_seconds instead"
_LIMIT_NAMES: Final = {errno.ENOSPC: "max_user_watches", errno.EMFILE: "max_user_instances"}
# What can mean new content. Opening, reading and closing after reading cannot: that is what a look does itself.
_EVENT_CLASSES: Final = (
    "FileCreatedEvent", "FileModifiedEvent", "FileAttribEvent", "FileMovedEvent", "FileClosedEvent",
    "FileDeletedEvent", "DirCreatedEvent", "DirAttribEvent", "DirMovedEvent", "DirDeletedEvent",
)  # fmt: skip

_WatchKey = tuple[str, bool]
"""What is really watched: a directory, and whether all beneath it too."""
_WatchRequest = tuple[str, bool, str]
"""What somebody wants to know of: the tag, whether all beneath too, the directory."""


@dataclass(slots=True)
class _ActiveWatch:
    watch: ObservedWatch
    emitter: EventEmitter
    identity: tuple[int, int]
    """Device and inode: a directory that was moved away is still watched, and the new one of its name is not."""
    partial: bool
    """Whether the system may have refused some of the directories beneath."""


class FolderWatcher:
    """Tells that something may have happened; never what. The folders are looked at all the same, now and then."""

    def __init__(self, hint: Callable[[str], None], *, polling: bool = False) -> None:
        """``hint(tag)`` is called from the watcher's own thread, and must be cheap; what happens within some
        milliseconds is one hint. ``polling``: look every second instead of having the system tell, for network
        drives."""
        self._hint = hint
        self._polling = polling
        self._polls = polling  # also where the system cannot tell
        self._guard = threading.RLock()  # never taken in the observer's threads: it is held while those are started
        self._wanted: dict[tuple[str, bool], tuple[str, ...]] = {}
        self._served: dict[_WatchRequest, _WatchKey] = {}
        self._armed: dict[_WatchKey, _ActiveWatch] = {}
        self._trouble: dict[_WatchKey, str] = {}
        self._told: set[str] = set()
        self._fallback = ""
        self._observer: BaseObserver | None = None
        self._thread: threading.Thread | None = None
        self._news = threading.Condition()  # over the next two; nothing else is taken while it is held
        self._noted: set[_WatchKey] = set()
        self._gone: set[_WatchKey] = set()
        self._closing = threading.Event()

    def set_directories(self, tag: str, directories: Iterable[Path], recursive: bool = True) -> list[str]:
        """Watch these directories under the tag, in place of those before (``recursive`` or not, apart).

        Cheap where nothing is to be done, and to be called now and then: it takes up again what is no longer
        watched. Of a directory that does not exist the nearest parent is watched until it appears. Look at a
        folder after this call, not before. Returns what cannot be watched, a line each; the same line once.
        """
        with self._guard:
            self._wanted[tag, recursive] = tuple(dict.fromkeys(os.path.realpath(d) for d in directories))
            wants = {(tag, recursive, path) for path in self._wanted[tag, recursive]}
            if not wants:
                del self._wanted[tag, recursive]
            for old in [want for want in self._served if want[:2] == (tag, recursive) and want not in wants]:
                del self._served[old]
            if self._observer is None:
                return []
            for want in sorted(wants):
                self._watch_nearest(want)
            self._stop_unused_watches()
            lines = [self._fallback] if self._fallback else []
            lines += sorted(self._trouble[key] for key in {self._served[want] for want in wants} & set(self._trouble))
            fresh = [line for line in lines if line not in self._told]
            self._told = (self._told & {self._fallback, *self._trouble.values()}) | set(fresh)
            return fresh

    def start(self) -> None:
        """Begin to tell. Nothing happens where that has begun."""
        with self._guard:
            if self._observer is not None:
                return
            # Its complaints would go to the terminal; they are of no use there.
            logging.getLogger("watchdog").addHandler(logging.NullHandler())
            self._observer = self._make_observer()
            self._observer.start()
            for (tag, recursive), paths in self._wanted.items():
                for path in paths:
                    self._watch_nearest((tag, recursive, path))
            self._closing.clear()
            self._thread = threading.Thread(target=self._give_hints, name="watcher", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop telling; returns when no hint is given any more. Nothing happens where that is so already."""
        self._closing.set()
        with self._news:
            self._news.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._guard:
            if self._observer is not None:
                self._observer.stop()
                self._observer.join()
                self._observer = None
            for kept in (self._served, self._armed, self._trouble, self._noted, self._gone):
                kept.clear()

    # -- telling ------------------------------------------------------------------------------------------------

    def _give_hints(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._noted or self._closing.is_set())
                noted, gone = self._noted.copy(), self._gone.copy()
                self._noted.clear()
                self._gone.clear()
            if self._closing.is_set():
                return
            for tag in sorted(self._find_affected_tags(noted, gone)):
                self._hint(tag)
            self._closing.wait(_HINT_PAUSE)

    def _find_affected_tags(self, noted: set[_WatchKey], gone: set[_WatchKey]) -> set[str]:
        """Whom it concerns. What disappeared or appeared is watched from now on, before anybody looks."""
        tags: set[str] = set()
        with self._guard:
            if self._observer is None:
                return tags
            for key in gone & set(self._armed):
                self._armed[key].emitter.join(POLL_SECONDS)  # it is about to end by itself
                self._stop_watch(key)
            for want, key in list(self._served.items()):
                if key in noted:
                    self._watch_nearest(want)
                    # In a parent of what is wanted, only this matters: that it is there now.
                    if want[2] in (key[0], self._served[want][0]):
                        tags.add(want[0])
            self._stop_unused_watches()
        return tags

    def _make_handler(self, key: _WatchKey) -> FileSystemEventHandler:
        from watchdog.events import DirDeletedEvent, FileSystemEventHandler

        watcher = self

        class Handler(FileSystemEventHandler):
            def dispatch(self, event: FileSystemEvent) -> None:
                with watcher._news:
                    watcher._noted.add(key)
                    if isinstance(event, DirDeletedEvent) and event.src_path == key[0]:
                        watcher._gone.add(key)
                    watcher._news.notify()

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

    def _watch_nearest(self, want: _WatchRequest) -> None:
        """Have the directory watched, or as long as there is none, the nearest one above it."""
        _, recursive, path = want
        key = _nearest_directory(path, recursive)
        self._start_watch(key)
        while (now := _nearest_directory(path, recursive)) != key:  # it appeared, or disappeared, meanwhile
            key = now
            self._start_watch(key)
        self._served[want] = key

    def _start_watch(self, key: _WatchKey) -> None:
        path, recursive = key
        try:
            status = Path(path).stat()
            identity = status.st_dev, status.st_ino
            armed = self._armed.get(key)
            if armed and armed.emitter.is_alive() and armed.identity == identity and not armed.partial:
                return
            self._stop_watch(key)
            with os.scandir(path) as entries:  # the observer would pass over one that cannot be read
                nested = any(entry.is_dir(follow_symlinks=False) for entry in entries)
            watch, emitter = self._schedule_watch(key)
            self._armed[key] = _ActiveWatch(watch, emitter, identity, partial=False)
        except FileNotFoundError:
            return
        except OSError as error:
            self._trouble[key] = f"{escape_name(path)} cannot be watched: {_describe_error(error)}. {_FALLBACK_NOTE}"
            return
        self._trouble.pop(key, None)
        if nested and recursive and (refusal := self._find_system_limit()):
            self._armed[key].partial = True
            self._trouble[key] = f"not all of {escape_name(path)} may be watched: {refusal}. {_FALLBACK_NOTE}"

    def _find_system_limit(self) -> str:
        """Why the system would refuse one more directory: the observer does not say when it does so beneath one."""
        key = (os.sep, False)
        if not self._polls and key not in self._armed:
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
        # The same events for all: two watches of one directory share what they ask of the system.
        kinds: list[type[FileSystemEvent]] = [getattr(events, name) for name in _EVENT_CLASSES if hasattr(events, name)]
        watch = self._observer.schedule(self._make_handler(key), key[0], recursive=key[1], event_filter=kinds)
        return watch, next(emitter for emitter in self._observer.emitters if emitter.watch == watch)

    def _stop_watch(self, key: _WatchKey) -> None:
        armed = self._armed.pop(key, None)
        if armed is not None and self._observer is not None:
            self._observer.unschedule(armed.watch)

    def _stop_unused_watches(self) -> None:
        """Stop watching what nobody wants any more."""
        needed = set(self._served.values())
        for key in [key for key in self._armed if key not in needed]:
            self._stop_watch(key)
        for key in [key for key in self._trouble if key not in needed]:
            del self._trouble[key]


def _nearest_directory(path: str, recursive: bool) -> _WatchKey:
    """The directory itself, or the nearest above it that exists."""
    here = Path(path)
    while not here.is_dir() and here.parent != here:
        here = here.parent
    return str(here), recursive and str(here) == path


def _describe_error(error: OSError) -> str:
    limit = _LIMIT_NAMES.get(error.errno or 0)
    if limit is None:
        return describe_os_error(error)
    return f"a limit of the system is reached (fs.inotify.{limit}; raise it with sysctl)"
