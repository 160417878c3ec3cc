"""The real service in a process of its own: real files, real time, real signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from harness import Workspace, chase, copy_books, no_traceback, take_ok
from patience import PATIENCE
from running import Up, eventually

pytestmark = pytest.mark.slow

IN = chase(*((f"01/0{n}/2025", f"INVOICE {n}", "5.00", f"{n * 5}.00") for n in range(1, 5)))


def test_c3_a_slow_write_fires_once_with_the_complete_file(up: Up) -> None:
    """Row C3: written in pieces over three seconds, with the default settle time."""
    up.start()
    rows = chase(*((f"01/{n:02}/2025", f"ROW {n}", "1.00") for n in range(1, 31))).encode()
    path = up.ws.root / "import/slow.csv"
    with path.open("wb") as file:
        for at in range(0, len(rows), len(rows) // 15 + 1):
            file.write(rows[at : at + len(rows) // 15 + 1])
            file.flush()
            time.sleep(0.2)
    eventually(lambda: up.log("run.succeeded"))
    time.sleep(1)
    assert len(up.log("run.succeeded")) == 1 and len(up.ws.entries()) == 30
    assert up.stop()[0] == 0
    up.ws.in_order()


def test_a_file_dropped_by_any_program_is_in_the_books_seconds_later(up: Up) -> None:
    up.ws.config("import.settle_seconds=0.2")
    up.start()
    up.ws.drop("bank.csv.part", IN)
    (up.ws.root / "import/bank.csv.part").rename(up.ws.root / "import/bank.csv")
    eventually(lambda: up.log("run.succeeded"))
    assert len(up.ws.entries()) == 4 and len(up.ws.cards()) == 4
    assert up.stop()[0] == 0


def test_status_logs_schedule_and_down(up: Up) -> None:
    down = up.ws.json("status")
    assert not down["up"] and down["trouble"] == ["the service is not up (cleared up)"]
    assert up.ws("status", "--check").code == 1
    up.start()
    said = up.ws.json("status")
    assert said["up"] and said["ready"] and up.process is not None and said["pid"] == up.process.pid
    assert said["confinement"] and said["lock"] is None and said["cards"] == 0 and said["trouble"] == []
    assert {a["name"] for a in said["agents"]} == {"ingest", "monthly_summary", "review_reminder"}
    assert all(a["next_due"] for a in said["agents"])
    assert up.ws("status", "--check").out == "healthy\n"
    shown = up.ws.ok("status").out
    assert "up since" in shown and "ingest" in shown and "0 6 * * *" in shown
    times = up.ws.json("schedule", "--days", "3", "--agent", "ingest")
    assert len(times) == 3 and all(t["utc"].endswith("T06:00:00Z") and t["timezone"] == "UTC" for t in times)
    assert "service.up" in up.ws.ok("logs").out
    assert json.loads(up.ws.ok("logs", "--json", "-n", "1").out)["what"] == "service.up"
    done = up.ws.ok("down")
    assert "has ended" in done.err and up.process.wait(PATIENCE) == 0
    assert "was not up" in up.ws.ok("down").err


def test_logs_can_be_followed(up: Up) -> None:
    up.agent("hears", "trigger: event\nevent: ping\n", 'ctx_emit("pong")')
    up.start()
    follower = up.ws.start("logs", "-f", "-n", "0")
    time.sleep(1.0)
    up.ws.ok("event", "emit", "ping")
    assert follower.stdout is not None
    line = follower.stdout.readline().decode()
    assert "run.succeeded hears" in line
    follower.send_signal(signal.SIGINT)
    assert follower.wait(PATIENCE) == 130
    no_traceback_in(follower)


def no_traceback_in(process: subprocess.Popen[bytes]) -> None:
    _, err = process.communicate()
    assert b"Traceback" not in err, err


def test_a_second_service_is_refused_and_names_the_first(up: Up) -> None:
    first = up.start()
    second = up.ws.process("up")
    assert second.code == 5 and f"process {first.pid}" in second.err and "cleared status" in second.err
    no_traceback(second)
    again = up.ws.process("up", "--detach")
    assert again.code == 5 and f"process {first.pid}" in again.err


def test_a_service_that_was_killed_leaves_nothing_in_the_way(up: Up) -> None:
    """Row C8: what it left, a lock and a status file, holds nobody up."""
    up.start().kill()
    assert up.process is not None
    up.process.communicate()
    assert not up.ws.json("status")["up"] and (up.ws.root / ".cleared/service.json").exists()
    up.start()
    assert up.stop()[0] == 0
    assert not (up.ws.root / ".cleared/service.json").exists()


def test_detached_it_goes_on_by_itself(up: Up) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "CLEARED_CLOCK"}
    done = up.ws.process("up", "--detach", env=environment)
    assert done.code == 0 and "cleared down" in done.err
    try:
        assert up.ws.json("status")["ready"]
    finally:
        up.ws.ok("down")
    assert not up.ws.json("status")["up"]


def test_detached_it_says_why_it_does_not_come_up(up: Up) -> None:
    up.ws.put("config.yaml", "business: [")
    done = up.ws.process("up", "--detach")
    assert done.code == 4 and "config.yaml" in done.err
    no_traceback(done)


SLOW = 'n = 0\nwhile n < 60000000:\n    n = n + 1\nctx_emit("done", n)'


def test_sigterm_lets_the_run_end_and_a_second_one_breaks_it_off(up: Up) -> None:
    up.agent("slow", "trigger: event\nevent: ping\ntimeout: 60\n", SLOW.replace("60000000", "6000000"))
    up.start()
    up.ws.ok("event", "emit", "ping")
    eventually(lambda: up.board().get("running"))
    code, err = up.stop()
    assert code == 0 and "slow: agent: slow" in err, err
    assert len(up.log("run.succeeded")) == 1

    up.agent("slow", "trigger: event\nevent: ping\ntimeout: 60\n", SLOW)
    up.start()
    head = up.ws.git("log", "--format=%s")
    up.ws.ok("event", "emit", "ping")
    eventually(lambda: up.board().get("running"))
    assert up.process is not None
    up.process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    code, err = up.stop()
    assert code == 130 and "Traceback" not in err, err
    assert up.ws.git("log", "--format=%s") == "event: ping\n" + head, "nothing of the run is there"
    up.ws.in_order()
    up.agent("slow", "trigger: event\nevent: ping\n", 'ctx_emit("quick")')
    up.start()
    eventually(lambda: len(up.log("run.succeeded")) == 2)
    assert up.stop()[0] == 0


def test_down_now_breaks_the_run_off(up: Up) -> None:
    up.agent("slow", "trigger: event\nevent: ping\ntimeout: 60\n", SLOW)
    up.start()
    up.ws.ok("event", "emit", "ping")
    eventually(lambda: up.board().get("running"))
    waiting = up.ws("down", "--wait", "0.2")
    assert waiting.code == 5 and "cleared down --now" in waiting.err
    up.ws.ok("down", "--now")
    assert up.stop()[0] == 130


def test_ctrl_c_on_the_terminal_lets_the_run_end(up: Up) -> None:
    """Ctrl-C goes to the whole process group, so to the sandbox's workers too."""
    up.agent("slow", "trigger: event\nevent: ping\ntimeout: 60\n", SLOW.replace("60000000", "20000000"))
    process = up.start(start_new_session=True)
    up.ws.ok("event", "emit", "ping")
    eventually(lambda: up.board().get("running"))
    time.sleep(0.5)  # the worker computes by now
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    code, err = up.stop()
    assert code == 0 and "Traceback" not in err and "slow: agent: slow" in err, err


def test_a_hung_run_is_stopped_at_its_deadline_and_the_next_goes_on(up: Up) -> None:
    up.agent("hangs", "trigger: event\nevent: ping\ntimeout: 1\nretries: 0\n", "while True:\n    pass\n")
    up.agent("next", "trigger: event\nevent: ping\n", 'ctx_emit("next")')
    up.start()
    up.ws.ok("event", "emit", "ping")
    eventually(lambda: up.log("run.succeeded"))
    assert up.log("run.succeeded")[0]["agent"] == "next"
    assert up.log("run.failed")[0]["agent"] == "hangs"
    assert up.stop()[0] == 0


def test_an_approval_takes_effect_without_a_restart_and_so_does_a_rollback(up: Up) -> None:
    """Row C7, in a running service."""
    up.start()
    up.ws.put("agents/hears.py", '"""\nname: hears\ntrigger: event\nevent: ping\n"""\nctx_emit("v1")\n')
    up.ws.ok("event", "emit", "ping")
    up.ws.ok("agent", "propose", "hears")
    take_ok(up.ws, "agent", "approve", "P1")
    up.ws.ok("event", "emit", "ping")
    eventually(lambda: len(up.log("run.succeeded")) == 1)
    up.ws.ok("agent", "rollback", "hears", "--reason", "no")
    up.ws.ok("event", "emit", "ping")
    time.sleep(1)
    assert len(up.log("run.succeeded")) == 1
    assert up.stop()[0] == 0


def test_an_answer_from_another_clone_is_taken_up(up: Up) -> None:
    ask = 'a = queue_ask("Really?", ["yes", "no"])\nctx_emit("said", a)'
    up.agent("asks", "trigger: event\nevent: ping\n", ask)
    up.start()
    up.ws.ok("event", "emit", "ping")
    eventually(lambda: up.log("run.waiting"))
    [card] = up.ws.cards()
    # As another clone's answer comes in: the card is settled, and nobody here goes on with the run.
    settle(up.ws, card["id"], "yes")
    eventually(lambda: '"payload":"yes"' in up.ws.read_events())
    assert up.stop()[0] == 0


def settle(ws: Workspace, card: str, choice: str) -> None:
    from cleared.changes.workspace_opening import open_workspace
    from cleared.review.card_decisions import answer_card

    answer_card(open_workspace(ws.root), card, choice)


def test_c10_on_demand_and_triggered_runs_go_one_way_and_leave_one_record(up: Up) -> None:
    """Row C10: from the command line, over RPC and by the service: the same trailers, the same trace."""
    up.agent("beat", "trigger: [on_demand, event]\nevent: ping\n", 'ctx_emit("beat", ctx_event()["kind"])')
    up.start()
    up.ws.ok("event", "emit", "ping")
    eventually(lambda: up.log("run.succeeded"))
    up.ws.run("beat")
    request = {"jsonrpc": "2.0", "id": 1, "method": "agent.run", "params": {"name": "beat"}}
    done = up.ws.process("rpc", "--stdio", stdin=(json.dumps(request) + "\n").encode())
    assert json.loads(done.out.splitlines()[0])["result"]["status"] == "succeeded", done
    runs = up.ws.json("run", "list", "--agent", "beat")
    assert [r["status"] for r in runs] == ["succeeded"] * 3
    shown = up.ws.git("log", "--format=%(trailers:only,unfold)", "--grep=Agent: beat")
    made = [dict(line.split(": ", 1) for line in part.splitlines()) for part in shown.strip().split("\n\n")]
    assert len(made) == 3 and len({tuple(sorted(m.keys() - {"Depth"})) for m in made}) == 1, "the same trailers in each"
    assert {m["Event"].split()[0] for m in made} == {"event", "on_demand"}
    assert up.stop()[0] == 0


def test_a_person_does_not_wait_for_the_service_to_be_done_with_everything(up: Up) -> None:
    """Between two of the service's runs, whoever waits for the lock goes first."""
    up.agent("busy", "trigger: event\nevent: ping\n", "n = 0\nwhile n < 400000:\n    n = n + 1\nctx_emit('x')")
    up.agent("mine", "trigger: on_demand\n", 'ctx_emit("y")')
    for _ in range(30):
        up.ws.ok("event", "emit", "ping")
    up.start()
    eventually(lambda: up.log("run.succeeded"))
    up.ws.run("mine")
    before = len(up.log("run.succeeded"))
    assert before < 25, "it did not have to wait for all of them"
    eventually(lambda: len(up.log("run.succeeded")) == 30, 60)
    assert up.stop()[0] == 0


def test_several_workspaces_in_one_process_each_have_their_turn(up: Up, tmp_path: Path) -> None:

    up.agent("hears", "trigger: event\nevent: ping\n", 'ctx_emit("heard")')
    other = Up(Workspace(tmp_path / "other"))
    copy_books(up.ws.root, other.ws.root)
    for _ in range(10):
        up.ws.ok("event", "emit", "ping")
    other.ws.ok("event", "emit", "ping")
    process = subprocess.Popen(
        [sys.executable, "-m", "cleared", "up", str(up.ws.root), str(other.ws.root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        eventually(lambda: len(up.log("run.succeeded")) == 10 and other.log("run.succeeded"))
        [there] = other.log("run.succeeded")
        assert there["at"] < up.log("run.succeeded")[3]["at"], "it did not have to wait for the other's backlog"
        assert up.board()["pid"] == other.board()["pid"] == process.pid
    finally:
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and b"books: " in err and b"other: " in err


def test_i4_the_service_listens_on_no_port(up: Up) -> None:
    """Row I4, as far as there is something to check: nothing of it can be reached over a network."""
    process = up.start()
    if not Path("/proc/net/tcp").exists():
        pytest.skip("no /proc here")
    inodes = set()
    for entry in Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            target = os.readlink(entry)
        except FileNotFoundError:  # a file that it had open for a moment
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    for table in ("tcp", "tcp6", "udp", "udp6"):
        rows = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        assert not [row for row in rows if row.split()[9] in inodes], table
    rows = Path("/proc/net/unix").read_text().splitlines()[1:]
    assert not [row for row in rows if row.split()[3] == "00010000" and row.split()[6] in inodes], "nor listens here"
    assert up.stop()[0] == 0


def test_the_state_may_be_deleted_while_it_is_up(up: Up) -> None:
    up.agent("hears", "trigger: event\nevent: ping\n", 'ctx_emit("heard")')
    up.start()
    up.ws.ok("event", "emit", "ping")
    eventually(lambda: up.log("run.succeeded"))
    (up.ws.root / ".cleared").rename(up.ws.root.parent / "deleted")  # at once: the service writes into it meanwhile
    up.ws.ok("event", "emit", "ping")
    eventually(lambda: len(up.ws.git("log", "--grep=Agent: hears", "--format=%h").split()) == 2)
    assert up.stop()[0] == 0


def test_secrets_do_not_reach_the_log(up: Up) -> None:
    up.ws.config("notifications.smtp_password=sk-very-secret-1234")
    up.agent("fails", "trigger: event\nevent: ping\nretries: 0\n", 'ctx_event()["payload"]["nothing"]["there"]')
    up.start()
    up.ws.ok("event", "emit", "ping", "--data", '{"nothing": "sk-very-secret-1234"}')
    eventually(lambda: up.log("run.failed"))
    assert up.stop()[0] == 0
    assert "sk-very-secret-1234" not in (up.ws.root / ".cleared/service.log").read_text()


def test_ten_writers_at_once_lose_nothing(up: Up) -> None:
    up.ws.config("import.settle_seconds=0.2")
    up.start()

    def write(writer: int) -> None:
        for n in range(5):
            day, amount = f"01/{n + 1:02}/2025", f"{writer + 1}.00"
            part = up.ws.root / f"import/{writer}-{n}.csv.part"
            part.write_text(chase((day, f"W {writer} {n}", amount)))
            time.sleep(0.01 * writer)
            part.rename(part.with_suffix(""))

    threads = [threading.Thread(target=write, args=(w,)) for w in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    eventually(lambda: not list((up.ws.root / "import").glob("*.csv")))
    eventually(lambda: not up.board().get("running"))
    assert up.stop()[0] == 0
    assert len(up.ws.entries()) == 50
    up.ws.in_order()


def test_deliveries_wait_while_a_person_commits(up: Up) -> None:
    """Fault 19: git commit holds the index while its editor is open; status says so, and nothing is lost."""
    up.ws.config("import.settle_seconds=0.2", "lock.wait_seconds=0")
    up.start()
    lock = up.ws.put(".git/index.lock", "")
    up.ws.drop("bank.csv", IN)
    eventually(lambda: any("deliveries wait" in line for line in up.ws.json("status")["trouble"]))
    assert up.ws.entries() == [] and lock.exists()
    lock.unlink()
    eventually(lambda: up.log("run.succeeded"))
    assert len(up.ws.entries()) == 4
    assert up.stop()[0] == 0
