"""A workspace in which anybody does anything to its agents, and a model of what may run there."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

from forked import Forks
from harness import Done, Workspace, copy_books, no_traceback, remove_tree, take_ok, take_shown
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cleared.git import STEPS
from cleared.trust.approval_record import (
    WORKSPACE,
    digest_of,
    quarantine_path,
    record_folder,
    record_path,
    short_digest,
)

BEGAN = datetime(2025, 2, 10, 6, tzinfo=UTC)
NAMES = ("alpha", "beta")
VERSIONS = range(1, 6)
FOLDER = "queue/proposals"


def text_of(version: int) -> bytes:
    """The same under either name, so that a record of one could be tried for the other. Its result is its version."""
    log = f'ctx_log("this is {version}")\n' if version % 2 == 0 else ""
    return f'"""\nname: Probe\ntrigger: on_demand\ndescription: Says {version}\n"""\n{log}{version}\n'.encode()


DIGESTS = {digest_of(text_of(v)): v for v in VERSIONS}

names = st.sampled_from(NAMES)
versions = st.sampled_from(VERSIONS)
which = st.integers(0, 40)


def path_of(name: str) -> str:
    return f"agents/{name}.py"


class GateMachine(RuleBasedStateMachine):
    """Everything through the command line, plain git, or the file system; the model beside it."""

    template: ClassVar[Path]
    """A workspace as ``cleared init`` makes it."""
    forks: ClassVar[Forks]

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="gate-"))
        self.now = BEGAN
        self._switch()
        self.ws = Workspace(copy_books(self.template, self.folder / "w"))
        self.good: dict[str, bytes] = {}
        """Record id → its bytes, of every approval that was made here by the command."""
        self.withdrawn: set[str] = set()
        """Ids of those that a rollback took back."""
        self.unsure: set[str] = set()
        """Ids of those whose rollback was killed: they may count, or not."""
        self.barred: dict[tuple[str, str], bool] = {}
        """(path, digest) of what was rolled back and not approved again since; False where that was killed."""
        self.proposals: dict[str, tuple[str, str]] = {}
        self.decisions: dict[str, bytes] = {}
        self.happened: dict[str, Counter[tuple[str, str]]] = {path_of(n): Counter() for n in NAMES}
        self.live: dict[str, list[str]] = {path_of(n): [] for n in NAMES}
        """Path → the versions one could go back to, the live one last; right while nobody uses plain git."""
        self.by_hand = False
        self.turn = 0
        self.files_before = self._journal()
        self._switch()

    # -- doing ----------------------------------------------------------------------------------------------------

    def _switch(self, home: str = "home") -> None:
        os.environ["CLEARED_HOME"] = str(self.folder / home)
        os.environ["CLEARED_CLOCK"] = f"{self.now:%Y-%m-%dT%H:%M:%SZ}"

    def do(self, *argv: str) -> Done:
        self.now += timedelta(seconds=7)
        self._switch()
        done = take_shown(self.ws, *argv, "--json")
        no_traceback(done)
        assert done.code in (0, 1, 2, 3), done
        return done

    def commit(self, *paths: str) -> None:
        """Plain git, by hand."""
        self.by_hand = True
        self.ws.git("add", "-A", "-f", "--", *paths)
        self.ws.git("commit", "-q", "--allow-empty", "-m", "by hand", "--", *paths, check=False)

    def committed(self, path: str) -> bytes | None:
        found = self.ws.git("cat-file", "blob", f"HEAD:{path}", check=False)
        return found.encode() if found else None

    def working(self, path: str) -> bytes | None:
        full = self.ws.root / path
        return full.read_bytes() if full.is_file() else None

    def put(self, path: str, data: bytes) -> None:
        self.ws.put(path, data)

    def folders(self) -> list[str]:
        where = self.ws.root / FOLDER
        return sorted(p.name for p in where.iterdir()) if where.is_dir() else []

    def record_files(self) -> list[str]:
        where = self.ws.root / "agents/approvals/agents"
        return sorted(p.relative_to(self.ws.root).as_posix() for p in where.rglob("*.json"))

    # -- the model ------------------------------------------------------------------------------------------------

    def verdict(self, path: str, *, elsewhere: bool = False) -> bool | None:
        """Whether the committed text must run; None where a killed rollback leaves it open.

        ``elsewhere``: in a clone, which knows of rollbacks only what the commit says.
        """
        data = self.committed(path)
        if data is None:
            return False
        digest = digest_of(data)
        if self.working(quarantine_path(path, digest)) is not None:
            return False
        found = self.working(record_path(path, digest))
        if found is None:
            return False
        try:
            record = json.loads(found)
            known = self.good.get(record["id"]) == found
        except (ValueError, KeyError, TypeError):
            return False
        workspace = (self.working(WORKSPACE) or b"").decode().strip()
        if not known or (record["path"], record["digest"]) != (path, digest) or record["workspace"] != workspace:
            return False
        if elsewhere:
            return True
        if record["id"] in self.withdrawn or self.barred.get((path, digest)):
            return False
        return None if record["id"] in self.unsure or (path, digest) in self.barred else True

    def learn(self) -> None:
        """What the program itself just wrote about proposals."""
        for folder in self.folders():
            found = self.working(f"{FOLDER}/{folder}/proposal.json")
            if found is not None and folder not in self.proposals:
                (file,) = json.loads(found)["files"]
                self.proposals[folder] = (file["path"], file["digest"])

    def approved(self, folder: str) -> None:
        """It was approved just now: live, signed, decided; nothing else would do."""
        path, digest = self.proposals[folder]
        data = self.committed(path)
        assert data is not None and digest_of(data) == digest, "what was reviewed is what became live"
        assert self.working(quarantine_path(path, digest)) is None
        found = self.working(record_path(path, digest))
        assert found is not None
        record = json.loads(found)
        assert (record["path"], record["digest"], record["proposal"]) == (path, digest, folder)
        assert record["id"] not in self.good
        self.good[record["id"]] = found
        self.barred.pop((path, digest), None)
        decision = self.working(f"{FOLDER}/{folder}/decision.json")
        assert decision is not None and json.loads(decision)["status"] == "approved"
        self.decisions[folder] = decision
        self.happened[path]["approved", short_digest(digest)] += 1
        self.live[path] = [d for d in self.live[path] if d != digest] + [digest]
        assert self.verdict(path) is True

    def rolled_back(self, path: str, digest: str, record: str | None) -> None:
        assert self.working(quarantine_path(path, digest)) is not None
        assert self.working(record_path(path, digest)) is None
        now = self.committed(path)
        assert now is None or digest_of(now) != digest
        if record:
            self.withdrawn.add(record)
        self.barred[path, digest] = True
        self.happened[path]["rolled back", short_digest(digest)] += 1
        self.live[path] = [d for d in self.live[path] if d != digest]
        if not self.by_hand:
            assert (digest_of(now) if now else None) == (self.live[path][-1] if self.live[path] else None)
        if now is not None:
            assert self.verdict(path) is not False, "what comes back may run"

    def record_of(self, path: str) -> tuple[str, str | None]:
        """Digest of the committed text, id of its record where that is genuine."""
        digest = digest_of(self.committed(path) or b"")
        data = self.working(record_path(path, digest))
        for known, made in self.good.items():
            if made == data and (json.loads(made)["path"], json.loads(made)["digest"]) == (path, digest):
                return digest, known
        return digest, None

    # -- what people do -------------------------------------------------------------------------------------------

    @initialize()
    def one_is_live(self) -> None:
        self.make_live("alpha", 1)

    @rule(name=names, version=versions)
    def edit(self, name: str, version: int) -> None:
        self.put(path_of(name), text_of(version))

    @rule(name=names)
    def remove(self, name: str) -> None:
        (self.ws.root / path_of(name)).unlink(missing_ok=True)

    @rule(name=names, version=versions, program=st.sampled_from((False, False, False, True)))
    def propose(self, name: str, version: int, program: bool) -> None:
        self.put(path_of(name), text_of(version))
        head = self.ws.head()
        done = self.do("agent", "propose", name, *(["--author", "bot"] if program else []))
        if done.code:
            assert self.ws.head() == head
            assert done.code in ((2, 3) if program else (2,)), done
        else:
            assert done.json["status"] == "open"
            self.learn()

    @rule(n=which)
    def approve(self, n: int) -> None:
        if not self.folders():
            return
        folder = self.folders()[n % len(self.folders())]
        head, lives = self.ws.head(), [self.committed(path_of(n)) for n in NAMES]
        done = self.do("agent", "approve", folder)
        self.learn()
        if done.code == 0 and done.json["commit"] is not None:
            self.approved(folder)
        else:
            assert [self.committed(path_of(n)) for n in NAMES] == lives
            if done.code == 0:
                assert self.ws.head() == head
            else:
                assert done.code == 3 and ("cleared " in done.err or "git" in done.err), done

    @rule(n=which)
    def reject(self, n: int) -> None:
        if not self.folders():
            return
        folder = self.folders()[n % len(self.folders())]
        decided = self.working(f"{FOLDER}/{folder}/decision.json")
        done = self.do("agent", "reject", folder, "--reason", "not so")
        assert done.code == (0 if decided is None else 3), done
        if done.code == 0:
            path, digest = self.proposals[folder]
            self.decisions[folder] = self.working(f"{FOLDER}/{folder}/decision.json") or b""
            self.happened[path]["rejected", short_digest(digest)] += 1

    @rule(name=names)
    def rollback(self, name: str) -> None:
        path = path_of(name)
        digest, record = self.record_of(path)
        live, edit = self.committed(path), self.working(path)
        done = self.do("agent", "rollback", name, "--reason", "was wrong")
        assert done.code == (2 if live is None else 0), done
        assert edit == live or self.working(path) == edit, "an edit stays as it is"
        if done.code == 0:
            self.rolled_back(path, digest, record)

    @rule(name=names)
    def run(self, name: str) -> None:
        path, head = path_of(name), self.ws.head()
        must = self.verdict(path)
        done = self.do("agent", "run", name)
        if done.code == 0:
            assert must is not False, "it ran, and should not have"
            data = self.committed(path) or b""
            assert done.json["result"] == DIGESTS[digest_of(data)]
        else:
            assert must is not True, done
            assert done.code == (2 if self.working(path) is None and self.committed(path) is None else 3), done
            assert "cleared agent" in done.err or "cleared trust" in done.err or "git " in done.err or done.code == 2
        assert self.ws.head() == head

    @rule(name=names)
    def dry_run(self, name: str) -> None:
        data = self.working(path_of(name)) or self.committed(path_of(name))
        done = self.do("agent", "run", name, "--dry-run")
        assert done.code == (2 if data is None else 0), done
        if data is not None:
            assert done.json["status"] == "dry_run"

    @rule(name=names, version=versions)
    def make_live(self, name: str, version: int) -> None:
        """Whatever came before: what is proposed and approved, as one is told to, runs."""
        path = path_of(name)
        self.put(path, text_of(version))
        done = self.do("agent", "propose", name)
        if done.code == 2:
            if self.committed(path) != text_of(version):
                assert "git " in done.err, done
                self.commit(path)
        else:
            assert done.code == 0, done
            self.learn()
            folder = next(f for f in reversed(self.folders()) if f.startswith(done.json["id"] + "-"))
            told = self.do("agent", "approve", folder)
            self.learn()
            if told.code == 3 and "taken its place" in told.err:
                new = told.err.split("cleared agent approve ")[1].split(".")[0].strip()
                folder = next(f for f in self.folders() if f == new)
                told = self.do("agent", "approve", folder)
            assert told.code == 0 and told.json["commit"], told
            self.approved(folder)
        ran = self.do("agent", "run", name)
        assert ran.code == 0 and ran.json["result"] == version, ran

    @rule(hours=st.sampled_from((1, 25, 24 * 40)))
    def wait(self, hours: int) -> None:
        self.now += timedelta(hours=hours)

    # -- what plain git and an editor can do ----------------------------------------------------------------------

    @rule(name=names, version=versions)
    def commit_by_hand(self, name: str, version: int) -> None:
        self.put(path_of(name), text_of(version))
        self.commit(path_of(name))

    @rule(name=names)
    def commit_removal(self, name: str) -> None:
        if self.committed(path_of(name)) is not None:
            (self.ws.root / path_of(name)).unlink(missing_ok=True)
            self.commit(path_of(name))

    @rule()
    def revert_the_last(self) -> None:
        self.by_hand = True
        if self.ws.git("rev-list", "--count", "HEAD").strip() == "1":
            return  # nobody reverts the making of the workspace
        self.ws.git("revert", "--no-edit", "HEAD", check=False)
        self.ws.git("revert", "--abort", check=False)

    @rule(n=which)
    def reset_to_an_older_commit(self, n: int) -> None:
        self.by_hand = True
        commits = self.ws.git("rev-list", "HEAD").split()
        self.ws.git("reset", "-q", "--hard", commits[n % min(len(commits), 12)])
        take_shown(self.ws, "recover", "--forget")

    @rule(n=which)
    def delete_a_record(self, n: int) -> None:
        """An approval, or what forbids."""
        found = self.record_files()
        if found:
            (self.ws.root / found[n % len(found)]).unlink()
            self.commit(found[n % len(found)])

    @rule(n=which, name=names, version=versions, field=st.sampled_from(("", "path", "grants", "serial", "all")))
    def forge_a_record(self, n: int, name: str, version: int, field: str) -> None:
        """A record under another's name, as it is or with a field changed, and the text it would be for."""
        found = [p for p in self.record_files() if not p.endswith(".quarantined.json")]
        if not found:
            return
        path, digest = path_of(name), digest_of(text_of(version))
        data = json.loads(self.working(found[n % len(found)]) or b"{}")
        new = {"path": path, "digest": digest, "grants": ["ctx_log", "journal_post"], "serial": 99}
        if field:
            data |= {k: v for k, v in new.items() if field in ("all", k)}
        render = (json.dumps(data, indent=1) + "\n").encode()
        self.put(record_path(path, digest), render if field else self.working(found[n % len(found)]) or b"")
        self.put(path, text_of(version))
        self.commit(record_path(path, digest), path)

    @rule(n=which)
    def bring_back_a_record(self, n: int) -> None:
        """One that was genuine once, with its text, and without what forbids it."""
        if not self.good:
            return
        data = list(self.good.values())[n % len(self.good)]
        record = json.loads(data)
        path, digest = record["path"], record["digest"]
        barred = self.ws.root / quarantine_path(path, digest)
        touched = [path, record_path(path, digest)]
        if barred.exists():
            barred.unlink()
            touched.append(quarantine_path(path, digest))
        self.put(path, text_of(DIGESTS[digest]))
        self.put(record_path(path, digest), data)
        self.commit(*touched)

    @rule(n=which, version=versions, how=st.sampled_from(("text", "both")))
    def edit_a_proposal(self, n: int, version: int, how: str) -> None:
        if not self.folders():
            return
        folder = self.folders()[n % len(self.folders())]
        path, _ = self.proposals[folder]
        where = f"{FOLDER}/{folder}"
        self.put(f"{where}/files/{path}", text_of(version))
        if how == "both":
            data = json.loads(self.working(f"{where}/proposal.json") or b"{}")
            data["files"][0]["digest"] = digest_of(text_of(version))
            self.put(f"{where}/proposal.json", (json.dumps(data, indent=1) + "\n").encode())
        self.commit(where)

    @rule(n=which, status=st.sampled_from(("approved", "rejected", "")))
    def edit_a_decision(self, n: int, status: str) -> None:
        if not self.folders():
            return
        where = f"{FOLDER}/{self.folders()[n % len(self.folders())]}/decision.json"
        said = {"status": status, "by": "nobody", "at": "2025-02-10T06:00:00Z", "reason": ""}
        if status:
            self.put(where, (json.dumps(said) + "\n").encode())
        elif self.working(where) is None:
            return
        else:
            (self.ws.root / where).unlink()
        self.commit(where)

    @rule(name=names, trusting=st.booleans())
    def clone(self, name: str, trusting: bool) -> None:
        """On another machine nothing runs before somebody there says yes; then the same as here."""
        root = self.folder / "clone"
        self.ws.git("clone", "-q", str(self.ws.root), str(root))
        there = Workspace(root)
        self._switch("other")
        must = self.verdict(path_of(name), elsewhere=True)
        before = there("agent", "run", name, "--json")
        assert before.code in (2, 3), before
        if must:
            assert "cleared trust" in before.err
        if trusting:
            take_ok(there, "trust", "--yes", "--json")
            after = there("agent", "run", name, "--json")
            assert (after.code == 0) == bool(must), after
            if must:
                assert after.json["result"] == DIGESTS[digest_of(self.committed(path_of(name)) or b"")]
        remove_tree(root)
        remove_tree(self.folder / "other")
        self._switch()

    # -- the power goes -------------------------------------------------------------------------------------------

    @rule(
        what=st.sampled_from(("propose", "approve", "reject", "rollback", "rollback")),
        name=names,
        version=versions,
        n=which,
        step=st.sampled_from(STEPS),
        nth=st.integers(1, 4),
    )
    def kill(self, what: str, name: str, version: int, n: int, step: str, nth: int) -> None:
        path = path_of(name)
        folder = self.folders()[n % len(self.folders())] if self.folders() else ""
        if what in ("approve", "reject") and not folder:
            return
        if what == "propose":
            self.put(path, text_of(version))
        words = {"reject": [folder, "no"], "approve": [folder]}.get(what, [name])
        digest, record = self.record_of(path)
        decided = self.working(f"{FOLDER}/{folder}/decision.json")
        head = self.ws.head()
        self.now += timedelta(seconds=7)
        self._switch()
        killed = self.forks.killed_at(self.ws.root, [what, *words], step, nth if step == "file" else 1)
        self.ws("agent", "history", name, "--json")  # the next command repairs
        self.learn()
        moved = self.ws.head() != head
        if killed:
            self.sound()
            assert moved == (STEPS.index(step) >= STEPS.index("ref"))
        if what == "rollback" and moved:
            self.rolled_back(path, digest, record)
        elif what == "rollback" and killed:
            self.barred.setdefault((path, digest), False)
            if record and record not in self.withdrawn:
                self.unsure.add(record)
        elif moved and what in ("approve", "reject"):
            found = self.working(f"{FOLDER}/{folder}/decision.json")
            assert found is not None and found != decided
            status = json.loads(found)["status"]
            if status == "approved":
                self.approved(folder)
            elif status == "rejected":
                self.decisions[folder] = found
                path, digest = self.proposals[folder]
                self.happened[path]["rejected", short_digest(digest)] += 1

    # -- what always holds ----------------------------------------------------------------------------------------

    def _journal(self) -> dict[str, bytes]:
        found = [*self.ws.root.glob("journal/**/*"), *self.ws.root.glob("bank/**/*")]
        return {str(p): p.read_bytes() for p in found if p.is_file()}

    @invariant()
    def books_untouched(self) -> None:
        assert self._journal() == self.files_before

    @invariant()
    def in_order(self) -> None:
        """Nothing lies about but the working copies that differ."""
        assert not (self.ws.root / ".cleared/seal.json").exists()
        changed = {line[3:] for line in self.ws.git("status", "--porcelain", "-uall").splitlines()}
        mine = {p for p in map(path_of, NAMES) if self.working(p) != self.committed(p)}
        assert changed == mine
        left = [p for p in self.ws.root.rglob("*") if p.name.endswith((".tmp", ".lock"))]
        assert [p for p in left if p.parent.name != ".cleared"] == []

    def teardown(self) -> None:
        try:
            self.sound()
        finally:
            remove_tree(self.folder)

    def sound(self) -> None:
        assert self.ws.git("fsck", "--no-dangling", "--no-progress") == ""

    @invariant()
    def history_is_what_happened(self) -> None:
        self.turn += 1
        for name in NAMES[self.turn % 2 :][:1]:
            path = path_of(name)
            done = self.do("agent", "history", name)
            assert done.code in (0, 2), done
            told = done.json if done.code == 0 else []
            said = Counter((e["event"], e["version"]) for e in told)
            for folder, data in self.decisions.items():
                there = f"{FOLDER}/{folder}"
                if self.proposals[folder][0] != path or self.working(f"{there}/proposal.json") is None:
                    continue
                if self.working(f"{there}/decision.json") == data:
                    event, number = json.loads(data)["status"], folder.split("-")[0]
                    assert any((e["event"], e["proposal"]) == (event, number) for e in told), (folder, told)
            if self.by_hand:
                continue
            kinds = ("approved", "rejected", "rolled back")
            assert Counter({k: n for k, n in said.items() if k[0] in kinds}) == self.happened[path]
            records = {
                digest_of(f.with_suffix(".py").read_bytes())
                for f in (self.ws.root / record_folder(path)).glob("*.json")
                if not any(part in f.name for part in (".quarantined", ".lifted"))
            }
            assert records == set(self.live[path])
            now = self.committed(path)
            assert (digest_of(now) if now else None) == (self.live[path][-1] if self.live[path] else None)
