"""C1, C2, C6, C8: 62 days of a service's life: every time that is due has its run, and only one.

The clock is the only thing that is not real. The service is stopped and started, put to sleep, kept busy by long runs;
its clock is set back; ``.cleared/`` is deleted under it and while it is down. What is expected is found by looking at
every minute of those days, and by a journal of what was done to the service; nothing of the program's own reckoning
is used for it. ``CLEARED_SIMULATIONS=20`` lives twenty lives of 400 days each instead.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from harness import Workspace
from patience import PATIENCE
from world import World

from cleared.runs.attempt import Event
from cleared.workspace.lock import writer_lock

START = datetime(2025, 2, 10, 6, 0, tzinfo=UTC)
LIVES = os.environ.get("CLEARED_SIMULATIONS")
DAYS = 400 if LIVES else 62
"""62 have a change of the clocks in each of the three zones."""
END = START + timedelta(days=DAYS)
MINUTE = timedelta(minutes=1)
AWAKE = timedelta(seconds=60)
"""What came due longer ago than that while the machine slept was missed."""
BEAT = 'ctx_emit("beat", ctx_event()["payload"]["due"])'
LONDON, NEW_YORK, LORD_HOWE = "Europe/London", "America/New_York", "Australia/Lord_Howe"
Matches = Callable[[datetime], bool]


@dataclass(frozen=True)
class Plan:
    """An agent, and the local times that its expression names, said in another way."""

    name: str
    cron: str
    zone: str
    matches: Matches
    catch_up: str = "latest"
    overlap: str = "skip"
    every_hour: bool = False
    more: str = ""

    @property
    def header(self) -> str:
        return (
            f"trigger: schedule\nschedule: {self.cron}\ntimezone: {self.zone}\ncatch_up: {self.catch_up}\n"
            f"overlap: {self.overlap}\n{self.more}"
        )


def sundays(hour: int, minute: int) -> Matches:
    """All clocks here are set on Sundays."""
    return lambda t: (t.hour, t.minute, t.isoweekday()) == (hour, minute, 7)


def last_of_month(t: datetime) -> bool:
    return (t.hour, t.minute, (t + timedelta(days=1)).day) == (0, 0, 1)


PLANS = (
    # Daily only in months in which clocks are set: a run for each day of the year would be most of this test's time.
    Plan(
        "london_daily",
        "30 1 * 3,10 *",
        LONDON,
        lambda t: (t.hour, t.minute) == (1, 30) and t.month in (3, 10),
        "all",
        "queue",
    ),
    Plan(
        "howe_days",
        "45 1 * 4,10 0,2,4",
        LORD_HOWE,
        lambda t: (t.hour, t.minute) == (1, 45) and t.month in (4, 10) and t.isoweekday() in (7, 2, 4),
        "none",
    ),
    # In the hour, or half hour, that is skipped in spring or happens twice in autumn.
    Plan("london_week", "15 1 * * 0", LONDON, sundays(1, 15), "latest"),
    Plan("london_first", "0 1 * * 0", LONDON, sundays(1, 0), "all"),
    Plan("london_none", "59 1 * * 7", LONDON, sundays(1, 59), "none"),
    Plan("york_gap", "30 2 * * 0", NEW_YORK, sundays(2, 30), "all", "queue"),
    Plan("york_fold", "30 1 * * SUN", NEW_YORK, sundays(1, 30), "latest", "queue"),
    Plan("york_after", "0 3 * * 0", NEW_YORK, sundays(3, 0), "none", "queue"),
    Plan("howe_gap", "15 2 * * 0", LORD_HOWE, sundays(2, 15), "latest"),
    Plan("howe_fold", "30 1 * * 0", LORD_HOWE, sundays(1, 30), "all", more="jitter: 20m\n"),
    Plan(
        "howe_both",
        "*/10 1,2 * * 0#1",
        LORD_HOWE,
        lambda t: t.isoweekday() == 7 and t.day <= 7 and t.hour in (1, 2) and t.minute % 10 == 0,
        "all",
        "queue",
    ),
    # By elapsed time, on the days on which clocks are set.
    Plan(
        "london_hours",
        "30 * 30,26 3,10 *",
        LONDON,
        lambda t: (t.month, t.day) in ((3, 30), (3, 26), (10, 30), (10, 26)) and t.minute == 30,
        "all",
        every_hour=True,
    ),
    Plan(
        "york_hours",
        "0 * 2,9 3,11 *",
        NEW_YORK,
        lambda t: t.month in (3, 11) and t.day in (2, 9) and t.minute == 0,
        "latest",
        every_hour=True,
    ),
    Plan("london_month", "0 0 L * *", LONDON, last_of_month, "latest"),
    Plan("york_month", "@monthly", NEW_YORK, lambda t: (t.day, t.hour, t.minute) == (1, 0, 0), "all"),
    Plan("howe_month", "5 12 31 * *", LORD_HOWE, lambda t: (t.day, t.hour, t.minute) == (31, 12, 5), "none"),
)


@cache
def wall(zone: str) -> list[tuple[datetime, datetime]]:
    """Each minute of UTC, from a day before the start, and what the clock on the wall shows then."""
    info, day = ZoneInfo(zone), timedelta(days=1)
    times = (START - day + number * MINUTE for number in range((DAYS + 40) * 1440))
    return [(utc, utc.astimezone(info).replace(tzinfo=None)) for utc in times]


@cache
def first_shown(zone: str) -> list[tuple[datetime, datetime]]:
    """Each local time, also those that are skipped, and the minute of UTC at which it has come, or has been passed."""
    found: list[tuple[datetime, datetime]] = []
    for utc, local in wall(zone):
        latest = found[-1][1] if found else local - MINUTE
        found += [(utc, latest + number * MINUTE) for number in range(1, (local - latest) // MINUTE + 1)]
    return found


def fires(plan: Plan) -> list[datetime]:
    """Every time it is due, in UTC: found by going through all minutes."""
    shown = wall(plan.zone) if plan.every_hour else first_shown(plan.zone)
    return list(dict.fromkeys(utc for utc, local in shown if plan.matches(local)))


@dataclass
class Expected:
    """What an agent's runs have to be, by what was done to the service. All times are what its clock showed."""

    plan: Plan
    due: list[datetime]
    ran: list[datetime] = field(default_factory=list)
    mark: datetime | None = None

    def within(self, after: datetime, until: datetime) -> list[datetime]:
        return self.due[bisect_right(self.due, after) : bisect_right(self.due, until)]

    def awake(self, until: datetime) -> None:
        """It was up, and idle, all the time until then."""
        self._decided([] if self.mark is None else self.within(self.mark, until), until)

    def back(self, now: datetime, woke: datetime) -> None:
        """It is awake again, since ``woke``."""
        if self.mark is None:
            self.mark = now
        past = self.within(self.mark, now)
        on_time = past[bisect_left(past, woke) :]
        missed = past[: len(past) - len(on_time)]
        if self.plan.catch_up == "none" or (self.plan.catch_up == "latest" and on_time):
            missed = []
        elif self.plan.catch_up == "latest":
            missed = missed[-1:]
        self._decided([*missed, *on_time], now)

    def busy(self, agent: str, until: datetime) -> None:
        """A run of ``agent`` took until then."""
        assert self.mark is not None
        past = self.within(self.mark, until)
        if self.plan.overlap == "skip":
            past = [] if agent == self.plan.name else past[:1]
        self._decided(past, until)

    def lost(self) -> None:
        """Nothing is known but the commits."""
        self.mark = self.ran[-1] if self.ran else None

    def _decided(self, ran: list[datetime], until: datetime) -> None:
        assert not self.ran or not ran or ran[0] > self.ran[-1]
        self.ran += ran
        self.mark = until if self.mark is None else max(self.mark, until)


class Life:
    """A service, what is done to it, and what that has to lead to."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.draw = world, random.Random(seed)
        self.expected = [Expected(plan, fires(plan)) for plan in PLANS]
        self.may_be_long = False
        self.done: Counter[str] = Counter()
        world.before_run = self._before_run

    def tell(self, what: Callable[[Expected], None]) -> None:
        for agent in self.expected:
            what(agent)

    def _before_run(self, agent: str, event: Event) -> None:
        """Now and then a run takes a day or two; only where nothing else waits, or it could not be said by hand."""
        now = self.world.time.at
        if not self.may_be_long or len(self.world.waiting()) != 1 or str(event.key) != f"{now:%Y-%m-%dT%H:%M:%SZ}":
            return
        self.may_be_long = False
        self.tell(lambda a: a.awake(now))
        until = self.world.time.forward(minutes=self.draw.randint(10, 3_000), seconds=self.draw.randint(0, 59))
        self.tell(lambda a: a.busy(agent, until))
        self.done["long run"] += 1

    def live(self) -> None:
        """All days."""
        self.start(lost=False)
        while self.world.time.at < END:
            self.awake(min(END, self.world.time.at + timedelta(minutes=self.draw.expovariate(1 / 5_000))))
            chosen = self.draw.choice((self.down, self.down, self.sleep, self.set_back, self.lose, self.long))
            self.done[chosen.__name__] += 1
            chosen()
        self.awake(self.world.time.at + timedelta(minutes=30))  # what is put off for a while has its run
        self.world.stop()

    def awake(self, until: datetime) -> None:
        """Let the service be up until then, asleep between one thing and the next."""
        service = self.world.service
        assert service is not None
        while True:
            while service.run_step():
                pass
            wake = service.wake_at()
            if wake is None or wake > until:
                break
            assert wake > self.world.time.at, "it would go round and round"
            self.world.time.at = wake
        self.world.time.at = max(until, self.world.time.at)
        while service.run_step():
            pass
        self.tell(lambda a: a.awake(self.world.time.at))

    def start(self, *, lost: bool) -> None:
        if lost:
            shutil.rmtree(self.world.state_dir)
            self.tell(Expected.lost)
        self.world.start()
        self._woken(self.world.time.at)

    def _woken(self, woke: datetime) -> None:
        assert self.world.service is not None
        now = self.world.time.at
        self.tell(lambda a: a.back(now, woke))
        while self.world.service.run_step():
            pass

    def down(self) -> None:
        """Stopped for minutes or days; sometimes its state is gone, or the clock another, when it comes up again."""
        self.world.stop()
        self.world.time.forward(seconds=self.draw.choice((600, 7_200, 90_000, 700_000)) * self.draw.random())
        if self.draw.random() < 0.2:
            self.world.time.forward(seconds=-self.draw.randint(1, 3_000))
        self.start(lost=self.draw.random() < 0.3)

    def sleep(self) -> None:
        """The lid was closed."""
        self.world.time.forward(seconds=self.draw.randint(90, 300_000))
        self._woken(self.world.time.at - AWAKE)

    def set_back(self) -> None:
        self.world.time.forward(seconds=-self.draw.randint(1, 3_000))
        self._woken(self.world.time.at - AWAKE)

    def lose(self) -> None:
        """``.cleared/`` is deleted under the running service."""
        shutil.rmtree(self.world.state_dir)
        self.tell(Expected.lost)
        self._woken(self.world.time.at - AWAKE)

    def long(self) -> None:
        """The next run that begins on time takes long."""
        self.may_be_long = True


def ran(world: World) -> dict[str, Counter[str]]:
    """The times that each agent's commits were for."""
    form = "%(trailers:key=Agent,valueonly,separator=)%x09%(trailers:key=Event,valueonly,separator=)"
    found: dict[str, Counter[str]] = {plan.name: Counter() for plan in PLANS}
    for line in world.ws.git("log", f"--format={form}").splitlines():
        name, _, event = line.partition("\t")
        if event:
            kind, _, key = event.partition(" ")
            assert kind == "schedule"
            found[name][key] += 1
    return found


@pytest.mark.parametrize("seed", range(int(LIVES or 1)))
def test_c1_c2_c8_every_time_that_is_due_has_one_run(ws: Workspace, seed: int) -> None:
    """Rows C1, C2, C6, C8: three time zones, all changes of their clocks, whatever happens to the service."""
    for name in ("ingest", "monthly_summary", "review_reminder"):
        ws.git("rm", "-q", f"agents/{name}.py")
    paths = [f"agents/{plan.name}.py" for plan in PLANS]
    for plan, path in zip(PLANS, paths, strict=True):
        ws.put(path, f'"""\nname: {plan.name}\n{plan.header}"""\n{BEAT}\n')
    ws.commit(*paths, *ws.approve(*paths))
    ws.git("commit", "-q", "-a", "-m", "only what the test is about")
    world = World(ws)
    ws.config("triggers.scan_seconds=86400")
    world.time.at = START
    life = Life(world, seed)
    try:
        life.live()
    finally:
        world.stop()
    found = ran(world)
    for agent in life.expected:
        wanted = Counter(f"{t:%Y-%m-%dT%H:%M:%SZ}" for t in agent.ran)
        have = found[agent.plan.name]
        assert have == wanted, (agent.plan.name, sorted(wanted - have), sorted(have - wanted), life.done)
    assert sum(len(agent.ran) for agent in life.expected) > DAYS
    assert all(life.done[what] for what in ("down", "sleep", "set_back", "lose", "long run")), life.done
    for zone in (LONDON, NEW_YORK, LORD_HOWE):
        changes = [utc for (_, a), (utc, b) in zip(wall(zone), wall(zone)[1:], strict=False) if b != a + MINUTE]
        assert len(changes) >= (2 if LIVES else 1), "so there was something to get wrong"


# --- clocks that were wrong ------------------------------------------------------------------------------------------


def lone(ws: Workspace, name: str, header: str, body: str = BEAT) -> World:
    """A world with one agent, in which the clock is wrong by years."""
    path = f"agents/{name}.py"
    for other in ("ingest", "monthly_summary", "review_reminder"):
        ws.git("rm", "-q", f"agents/{other}.py")
    ws.put(path, f'"""\nname: {name}\n{header}"""\n{body}\n')
    ws.commit(path, *ws.approve(path))
    ws.git("commit", "-q", "-a", "-m", "only what the test is about")
    world = World(ws)
    world.time.at = START.replace(year=2031)
    return world


@pytest.mark.parametrize("restarted", [True, False])
def test_c2_a_clock_that_was_wrong_by_years_keeps_no_schedule_waiting(ws: Workspace, restarted: bool) -> None:
    world = lone(ws, "beat", "trigger: schedule\nschedule: 0 * * * *\ncatch_up: none\n")
    with world:
        world.forward(minutes=90)
        assert world.keys("beat") == ["2031-02-10T07:00:00Z"]
        world.time.at = START
        if restarted:
            world.stop()
            world.start()
        world.forward(minutes=150)
    assert world.keys("beat")[1:] == ["2025-02-10T07:00:00Z", "2025-02-10T08:00:00Z"]


@pytest.mark.parametrize("restarted", [True, False])
def test_what_is_to_be_tried_again_does_not_wait_for_a_clock_that_was_wrong(ws: Workspace, restarted: bool) -> None:
    world = lone(ws, "fails", "trigger: event\nevent: ping\nretries: 2\n", "1 / 0")
    with world:
        world.settle()
        world.ws.ok("event", "emit", "ping")
        world.settle()
        assert len(world.log("run.failed")) == 1
        world.time.at = START
        if restarted:
            world.stop()
            world.start()
        world.forward(minutes=2)
        assert len(world.log("run.failed")) == 3


def test_folders_are_looked_at_soon_after_the_clock_was_set_back(ws: Workspace) -> None:
    world = lone(ws, "look", "trigger: file_watch\nwatch: letters/\n", 'ctx_emit("letter")')
    world.time.at = START
    with world:
        world.settle()
        world.time.forward(hours=-3)
        ws.put("letters/a.txt", "nobody hinted at it")
        end = world.time.at + timedelta(minutes=2)
        assert world.service is not None
        while world.time.at < end:
            if not world.service.run_step():
                world.time.at = min(end, max(world.time.at, world.service.wake_at() or end))
        assert len(world.ran("look")) == 1


def test_a_restart_forgets_no_failure(ws: Workspace) -> None:
    world = lone(ws, "fails", "trigger: event\nevent: ping\nretries: 2\n", "1 / 0")
    world.time.at = START
    with world:
        world.settle()
        world.ws.ok("event", "emit", "ping")
    for _ in range(10):
        with world:
            world.settle()
        world.time.forward(minutes=1)
    assert len(world.log("run.failed")) == 3 and len(world.log("delivery.given_up")) == 1


class OtherCommand:
    """Something else that has the workspace's lock, in another thread."""

    def __init__(self, world: World) -> None:
        self.world, self.held, self.free = world, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._work)

    def begin(self) -> None:
        self.thread.start()
        assert self.held.wait(PATIENCE)

    def end(self) -> None:
        self.free.set()
        self.thread.join()

    def _work(self) -> None:
        with writer_lock(self.world.state_dir, 0, "agent run", clock=self.world.time):
            self.held.set()
            self.free.wait(PATIENCE)


def test_another_command_at_work_when_a_chain_is_stopped_ends_no_service(ws: Workspace) -> None:
    """The card waits until it can be written, and the chain is stopped all the same."""
    world = lone(ws, "echo", "trigger: event\nevent: ping\n", 'ctx_emit("ping")')
    world.time.at = START
    ws.config("triggers.max_depth=1", "lock.wait_seconds=0")
    other = OtherCommand(world)
    with world:
        world.settle()
        assert world.service is not None
        world.ws.ok("event", "emit", "ping")
        world.service.handler.on_run = lambda delivery: None if delivery else other.begin()
        try:
            world.settle()
            assert len(world.ran("echo")) == 1 and world.service.problem is not None
        finally:
            other.end()
        world.service.handler.on_run = None
        world.forward(minutes=2)
        assert len(world.ran("echo")) == 1 and world.service.problem is None
        assert [card["kind"] for card in world.ws.cards()] == ["event_cycle"]
