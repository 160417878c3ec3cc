"""Calls of webhooks that come to the server of a fleet: taken once, kept, and run by whichever worker."""

from __future__ import annotations

import hashlib
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from fleets import FleetOfOne, end, read_fact
from harness import CLOCK
from held_pushes import hold_push
from program_client import Program, sign
from running import eventually
from signed_calls import make_called, send

from cleared.service.fleet.fleet_calls import list_waiting_calls
from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.local_postgres import LocalPostgres

pytestmark = pytest.mark.slow

POST = 'amount = ctx_event()["payload"]["amount"]\njournal_add_double("2025-02-09", "called", 5070, 1010, amount)\n1\n'


def list_kept(fleet: FleetOfOne) -> list[Path]:
    """The bodies that lie in the store."""
    return sorted((fleet.store / "calls/acme").glob("*"))


def list_amounts(fleet: FleetOfOne) -> list[str]:
    return sorted(entry["amount"] for entry in fleet.fetch().entries())


def forget_ends(fleet: FleetOfOne, calls: Path) -> None:
    """As if the worker had died after its pushes, before it wrote down what they settle. ``calls``: what lay in the
    store before."""
    fleet.query("UPDATE fleet_workspaces SET state = NULL, asked_due = NULL, due = now() - interval '1 s'")
    fleet.query("UPDATE fleet_calls SET settled = NULL, result = NULL")
    shutil.copytree(calls, fleet.store / "calls", dirs_exist_ok=True)


def test_a_call_is_run_once_by_whichever_worker(fleet: FleetOfOne) -> None:
    secret = make_called(fleet)
    with fleet.serving() as server:
        assert send(server, "whsec_" + "A" * 44, "m1", {"order": 7})[0] == 401
        assert send(server, secret, "m1", {"order": 7}) == (202, {"key": "hook/m1", "agent": "orders"})
        assert send(server, secret, "m1", {"order": 8})[0] == 409
        assert len(list_kept(fleet)) == 1
        refused = fleet.owner("remove", "acme")
        assert refused.code == 3 and "m1" in refused.err
        fleet.work("one")
        assert not list_kept(fleet), "its body is forgotten"
        assert send(server, secret, "m1", {"order": 7})[0] == 409
        fleet.work("two")
        one = fleet.worker("one").start()
        status, answer = send(server, secret, "m2", {"order": 9}, "?wait=30")
        assert status == 200 and answer["run"]["result"] == {"order": 9}, answer
        end(one)
    commits = fleet.fetch().git("log", "--format=%(trailers:key=Event,valueonly,separator=)", "--grep=Agent: orders")
    assert sorted(commits.split("\n")[:-1]) == ["webhook hook/m1", "webhook hook/m2"]


def test_a_call_that_comes_while_the_database_is_away_is_to_be_sent_again(
    fleet: FleetOfOne, cluster: LocalPostgres
) -> None:
    secret, body = make_called(fleet), b'{"order": 7}'
    ((name,),) = fleet.query("SELECT current_database()")
    with fleet.serving() as server, psycopg.connect(cluster.url, autocommit=True) as db, ThreadPoolExecutor(1) as pool:
        waits = pool.submit(send, server, secret, "m1", {"order": 6}, "?wait=30")
        eventually(lambda: fleet.owner.json("queue"))  # its job is asked for
        db.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        assert waits.result() == (202, {"key": "hook/m1", "agent": "orders"}), "it is kept"
        page = Program(server).send("POST", "/w/acme/hooks/orders", body, **sign(secret, body, "m2"))
        assert page.status == 503 and int(page.headers["retry-after"]) > 0 and "cannot be reached" in page.body, page
        db.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert send(server, secret, "m2", {"order": 7})[0] == 202
    assert [call["id"] for call in fleet.owner.json("status", "acme")["calls"]] == ["m1", "m2"]


def test_a_call_whose_worker_is_killed_is_run_by_another_once(fleet: FleetOfOne, tmp_path: Path) -> None:
    """Before its push, and after it but before that was written down."""
    secret = make_called(fleet, POST, '{"amount": "1.00"}')
    fleet.work("one", CLOCK)
    held = hold_push(fleet.shared, tmp_path)
    with fleet.serving() as server:
        assert send(server, secret, "m1", {"amount": "3.00"})[0] == 202
        first = fleet.worker("one").start("--patience", "2")
        eventually(Path(f"{held}-waits").exists)
        first.kill()
        first.communicate()
        held.unlink()
        assert send(server, secret, "m2", {"amount": "4.00"})[0] == 202
        shutil.copytree(fleet.store / "calls", tmp_path / "calls")
        second = fleet.worker("two").start("--patience", "2")
        eventually(lambda: not list_kept(fleet))
        end(second)
    assert list_amounts(fleet) == ["3.00", "4.00"]
    forget_ends(fleet, tmp_path / "calls")
    fleet.work("one")
    assert list_amounts(fleet) == ["3.00", "4.00"] and fleet.row()["problem"] == ""


def test_calls_of_a_lost_database_are_read_off_the_store(fleet: FleetOfOne) -> None:
    secret = make_called(fleet, POST, '{"amount": "1.00"}')
    with fleet.serving() as server:
        for number in (3, 4):
            assert send(server, secret, f"m{number}", {"amount": f"{number}.00"})[0] == 202
    fleet.query("DROP SCHEMA public CASCADE")
    fleet.query("CREATE SCHEMA public")
    fleet.owner.ok("init", "--database", fleet.database, "--store", read_fact(fleet.owner.home, "store"))
    (fleet.store / "calls/acme" / ("0" * 64)).write_text("no call")
    assert "is not restored" in fleet.add().err
    assert not fleet.desk.root.with_name("acme.before-1").exists(), "the owner's clone stays, with its secrets"
    assert [each["agent"] for each in fleet.desk.json("webhook", "list")] == ["orders"]
    assert [call["id"] for call in fleet.owner.json("status", "acme")["calls"]] == ["m3", "m4"]
    assert "calls: m3 (orders), m4 (orders)" in fleet.owner.ok("status", "acme").out
    fleet.work("one")
    assert list_amounts(fleet) == ["3.00", "4.00"] and [path.name for path in list_kept(fleet)] == ["0" * 64]


def test_a_call_over_which_its_script_fails_is_a_card_with_its_body_and_holds_no_other(
    fleet: FleetOfOne, tmp_path: Path
) -> None:
    secret = make_called(fleet, POST, '{"amount": "1.00"}')
    with fleet.serving() as server:
        assert send(server, secret, "bad", {"price": "7.00"}, "?ordering_key=anna")[0] == 202
        assert send(server, secret, "good", {"amount": "5.00"}, "?ordering_key=anna")[0] == 202
        shutil.copytree(fleet.store / "calls", tmp_path / "calls")
        fleet.work("one")
    assert list_amounts(fleet) == ["5.00"] and not list_kept(fleet)
    (card,) = [card for card in fleet.ws.cards() if card["kind"] == "failed_run"]
    assert "7.00" in json.dumps(card) and fleet.row()["problem"] == ""
    forget_ends(fleet, tmp_path / "calls")
    fleet.work("two")
    assert list_amounts(fleet) == ["5.00"]
    assert [card["kind"] for card in fleet.ws.cards()].count("failed_run") == 1


@pytest.mark.parametrize("body", ["{", "[" * 91 + "]" * 91], ids=["no JSON", "deep"])
def test_a_body_that_no_server_takes_is_not_run(fleet: FleetOfOne, body: str) -> None:
    """By whoever writes to the store and the database: a run that fails over it would leave a card nobody can read."""
    secret = make_called(fleet, POST, '{"amount": "1.00"}')
    with fleet.serving() as server:
        assert send(server, secret, "m1", {"amount": "1.00"})[0] == 202
    (kept,) = list_kept(fleet)
    forged = json.dumps({**json.loads(kept.read_bytes()), "body": body}).encode()
    digest = hashlib.sha256(forged).hexdigest()
    kept.with_name(digest).write_bytes(forged)
    fleet.query("UPDATE fleet_calls SET digest = %s", digest)
    fleet.work("one")
    assert "the call m1 of orders was not run" in fleet.row()["problem"] and not fleet.fetch().cards()


def test_a_request_whose_payload_cannot_be_kept_is_refused(fleet: FleetOfOne) -> None:
    """By whoever writes to the database."""
    fleet.owner("run", "acme", "monthly_summary", "--wait", "0", "--key", "deep", "--data", "[]")
    fleet.query("UPDATE fleet_requests SET payload = %s", "[" * 91 + "]" * 91)
    fleet.work("one")
    ended = fleet.owner("run", "acme", "monthly_summary", "--key", "deep", "--data", "[]", "--json").json
    assert ended["status"] == "refused" and "nested deeper than 90" in ended["said"]


def test_calls_of_one_ordering_key_are_run_in_the_order_they_came(fleet: FleetOfOne) -> None:
    """A body that cannot be had keeps back those behind it, and no others."""
    secret = make_called(fleet, POST, '{"amount": "1.00"}')
    with fleet.serving() as server:
        for number, query in ((1, "?ordering_key=anna"), (2, "?ordering_key=anna"), (3, "")):
            assert send(server, secret, f"m{number}", {"amount": f"{number}.00"}, query)[0] == 202
        (first,) = [path for path in list_kept(fleet) if b'"m1"' in path.read_bytes()]
        away = first.rename(fleet.store / "away")
        fleet.work("one")
        assert "the call m1 of orders was not run" in fleet.row()["problem"]
        assert list_amounts(fleet) == ["3.00"]
        assert send(server, secret, "m4", {"amount": "9.00"})[0] == 202
        fleet.query("UPDATE fleet_calls SET digest = '../../x' WHERE id = 'm4'")  # by whoever writes to the database
        fleet.owner.ok("withdraw", "acme", "m4")
        assert fleet.owner("withdraw", "acme", "m4").code == 2
        away.rename(first)
        fleet.make_due(CLOCK)
        fleet.work("two")
        assert fleet.row()["problem"] == ""
    assert [entry["amount"] for entry in fleet.fetch().entries()] == ["3.00", "1.00", "2.00"]


def test_a_job_brings_so_many_calls_of_each_agent(fleet: FleetOfOne) -> None:
    """So that those of one that is held keep no other's back."""
    fleet.query(
        "INSERT INTO fleet_calls (workspace, agent, id, ordering_key, digest, received) SELECT 'acme', agent, n::text, "
        "'', '', now() FROM (VALUES ('held', 501), ('orders', 3)) AS of (agent, most), generate_series(1, most) AS n"
    )
    with FleetDatabase.connect(fleet.database) as database:
        calls, has_more = list_waiting_calls(database, "acme")
    assert has_more and [(each.agent, each.id) for each in calls if each.agent == "orders"] == [
        ("orders", str(n)) for n in (1, 2, 3)
    ]
    assert len(calls) == 503


def test_a_call_is_to_be_sent_again_while_too_many_wait(fleet: FleetOfOne) -> None:
    secret, body = make_called(fleet), b'{"order": 7}'
    fleet.query(
        "INSERT INTO fleet_calls (workspace, agent, id, ordering_key, digest, received) SELECT 'acme', 'orders', "
        "n::text, '', '', now() FROM generate_series(1, 10000) AS n"
    )
    with fleet.serving() as server:
        page = Program(server).send("POST", "/w/acme/hooks/orders", body, **sign(secret, body, "m1"))
        assert page.status == 503 and int(page.headers["retry-after"]) > 0 and "10,000 calls wait" in page.body, page
        assert not list_kept(fleet)
        fleet.query("DELETE FROM fleet_calls WHERE id = '1'")
        assert send(server, secret, "m1", {"order": 7})[0] == 202


def test_a_call_of_another_body_or_of_another_workspace_is_not_run(fleet: FleetOfOne) -> None:
    """Whoever can write to the store changes a body; whoever can write to the database names another one."""
    secret = make_called(fleet, POST, '{"amount": "1.00"}')
    with fleet.serving() as server:
        assert send(server, secret, "m1", {"amount": "3.00"})[0] == 202
        (kept,) = list_kept(fleet)
        signed = kept.read_bytes()
        kept.write_bytes(signed.replace(b"3.00", b"9.00"))
        fleet.work("one")
        assert "another content" in fleet.row()["problem"] and list_amounts(fleet) == []
        assert send(server, secret, "m2", {"amount": "4.00"})[0] == 202
        other = signed.replace(b'"acme"', b'"beta"').replace(b"3.00", b"9.00")
        digest = hashlib.sha256(other).hexdigest()
        (kept.parent / digest).write_bytes(other)
        fleet.query("UPDATE fleet_calls SET digest = %s WHERE id = 'm2'", digest)
        fleet.work("two")
        assert f"{digest[:10]} is not this call of acme" in fleet.row()["problem"] and list_amounts(fleet) == []
        kept.write_bytes(signed)
        fleet.query("UPDATE fleet_calls SET digest = %s WHERE id = 'm2'", kept.name)
        fleet.make_due(CLOCK)
        fleet.work("two")
    assert list_amounts(fleet) == ["3.00"]
