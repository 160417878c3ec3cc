"""What passkeys have signed, as ``cleared check`` judges it in the history: no page and no extra is needed."""

from __future__ import annotations

import json
import sys

import pytest
from harness import Workspace, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from soft_passkey import SoftPasskey, decide_with, register_device

from cleared.changes.workspace_opening import open_workspace
from cleared.gate.proposals.passkey_registration import remove_passkey
from cleared.gate.proposals.submission import propose_changes
from cleared.review.card_decisions import confirm_records
from cleared.trust import approval_record
from cleared.trust.keys import _key_of, new_secret
from cleared.trust.passkey_assertions import (
    decode_text,
    encode_bytes,
    find_assertion_problem,
    format_assertion,
    format_passkey,
    is_origin_of,
    verify_assertion,
)
from cleared.trust.passkey_records import Passkey, passkey_path
from cleared.trust.reviewers import commit_payload

INVOICE, COFFEE = "2025-01-002", "2025-01-004"


def confirm(ws: Workspace, device: SoftPasskey, passkey: Passkey, entry: str = COFFEE, later: int = 0) -> str:
    """The commit of it."""
    decide_with(device, passkey, lambda: confirm_records(open_workspace(ws.root), [entry]), later=later)
    return ws.head()


def damage(ws: Workspace) -> list[str]:
    return [each["message"] for each in ws("check", "--json").json["violations"]]


def only(ws: Workspace, text: str) -> None:
    """The check finds this alone."""
    (message,) = damage(ws)
    assert text in message, message


def test_a_decision_is_verified_without_any_extra(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    device = SoftPasskey()
    passkey = register_device(posted.root, device)
    for name in ("webauthn", "starlette", "cbor2"):
        monkeypatch.setitem(sys.modules, name, None)
    confirm(posted, device, passkey)
    assert posted.trailers()["Key"] == passkey.key and posted.trailers()["By"] == "Ana"
    assert "(signed by Ana)" in posted.ok("why", COFFEE).out
    posted.in_order()
    assert posted.json("passkey", "list")[0]["id"] == passkey.id


def test_what_is_proposed_with_a_passkey_is_its_owners(posted: Workspace) -> None:
    device = SoftPasskey()
    passkey = register_device(posted.root, device)
    text = posted.read("agents/ingest.py").encode() + b"\nctx_log('more')\n"
    host = open_workspace(posted.root)
    made, _ = decide_with(device, passkey, lambda: propose_changes(host, [], texts={"agents/ingest.py": text}))
    assert made.data["author"]["name"] == "Ana" == posted.trailers()["By"]
    posted.in_order()


def test_a_signed_decision_that_was_altered_is_found(posted: Workspace) -> None:
    device = SoftPasskey()
    confirm(posted, device, register_device(posted.root, device))
    message = posted.git("log", "-1", "--format=%B").replace("By: Ana", "By: Eve")
    posted.git("commit", "-q", "--amend", "-m", message)
    assert any("what the passkey has signed is not this commit" in each for each in damage(posted))


def test_a_signature_carried_to_another_decision_is_found(posted: Workspace) -> None:
    device = SoftPasskey()
    confirm(posted, device, register_device(posted.root, device))
    signed = [f"{name}: {posted.trailers()[name]}" for name in ("Key", "Signature")]
    posted.ok("queue", "approve", INVOICE)
    message = posted.git("log", "-1", "--format=%B").strip()
    posted.git("commit", "-q", "--amend", "-m", "\n".join([message, *signed]))
    assert any("what the passkey has signed is not this commit" in each for each in damage(posted))


def test_a_passkey_that_nobody_registered_is_found_and_answered_for(posted: Workspace) -> None:
    device, stranger = SoftPasskey(), SoftPasskey()
    passkey = register_device(posted.root, device)
    der = decode_text(passkey.key.rpartition(":")[2])
    assert format_passkey("localhost", der) == passkey.key
    theirs = replace(passkey, key=format_passkey("localhost", _der(stranger)))
    commit = confirm(posted, stranger, theirs)
    only(posted, "its passkey was not registered in these books")
    posted.ok("accept", commit, "--reason", "that was me, with my new phone")
    posted.in_order()


def _der(device: SoftPasskey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return bytes(device.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def test_a_registration_that_a_stranger_pushed_does_not_count(posted: Workspace) -> None:
    """Nor does one that a passkey has signed for another: passkeys sign decisions alone."""
    device, stranger = SoftPasskey(), SoftPasskey()
    passkey = register_device(posted.root, device)
    mine = approval_record.parse_record(posted.read(passkey_path(passkey.key)).encode())
    key = format_passkey("localhost", _der(stranger))
    about = {**mine.policy, "key": key, "credential": stranger.id}
    record = replace(mine, id="f" * 16, path=passkey_path(key), policy=about, by="Eve", signature="")
    pushed = approval_record.sign_record(record, _key_of(new_secret()))
    posted.put(pushed.path, pushed.render())
    posted.commit(pushed.path, message="a phone")
    confirm(posted, stranger, replace(passkey, key=key))
    only(posted, "Eve registered its passkey, with a key that is not trusted")
    given = decide_with(device, passkey, lambda: _sign(record))
    assert given.key == passkey.key and not given.is_genuine


def _sign(record: approval_record.ApprovalRecord) -> approval_record.ApprovalRecord:
    from cleared.trust.device_signing import current_device

    device = current_device()
    assert device is not None
    return approval_record.sign_record(record, device.key)


def test_a_removed_passkey_that_git_brings_back_is_found(posted: Workspace) -> None:
    """What it has signed before stays right."""
    device = SoftPasskey()
    passkey = register_device(posted.root, device)
    before = confirm(posted, device, passkey)
    refused(posted("passkey", "remove", "zzz"), 2, "no passkey has the id")
    posted.ok("passkey", "remove", passkey.id[:6])
    posted.in_order()
    path = passkey_path(passkey.key)
    posted.git("checkout", "-q", before, "--", path)
    posted.git("commit", "-qm", "bring it back")
    assert posted.json("passkey", "list") == []
    confirm(posted, device, passkey, INVOICE)
    only(posted, "its passkey had been removed before")


def test_a_removed_passkey_can_be_registered_anew(posted: Workspace) -> None:
    device = SoftPasskey()
    passkey = register_device(posted.root, device)
    confirm(posted, device, passkey)
    remove_passkey(open_workspace(posted.root), passkey.id)
    confirm(posted, device, register_device(posted.root, device), INVOICE)
    posted.in_order()


def test_a_counter_that_went_back_is_found(posted: Workspace) -> None:
    device = SoftPasskey()
    device.counter = 7
    passkey = register_device(posted.root, device)
    confirm(posted, device, passkey)
    device.counter = 3
    confirm(posted, device, passkey, INVOICE, later=5)
    only(posted, "the counter of its passkey went back, from 8 to 4")


def test_an_assertion_is_of_one_workspace_commit_and_content() -> None:
    device = SoftPasskey()
    key = format_passkey("localhost", _der(device))
    told = {"By": "Ana", "Decision": "20250201T060000Z-1f3a9c", "Shown": "ab"}
    files = {"queue/2025-01.jsonl": b"{}\n"}
    data = commit_payload("a" * 32, "b" * 40, "confirm: coffee", told, files)
    assertion = _assertion_of(device, data)
    assert verify_assertion(key, assertion, data)
    for other in (
        commit_payload("c" * 32, "b" * 40, "confirm: coffee", told, files),
        commit_payload("a" * 32, "c" * 40, "confirm: coffee", told, files),
        commit_payload("a" * 32, "b" * 40, "reject: coffee", told, files),
        commit_payload("a" * 32, "b" * 40, "confirm: coffee", {**told, "Shown": "cd"}, files),
        commit_payload("a" * 32, "b" * 40, "confirm: coffee", told, {"queue/2025-01.jsonl": b"{ }\n"}),
    ):
        assert find_assertion_problem(key, assertion, other) == "it was made for other content"
    elsewhere = key.replace("localhost", "books.test")
    assert find_assertion_problem(elsewhere, assertion, data) == "it was made on another page"
    for change, problem in (
        ({"type": "webauthn.create"}, "it was made for something else"),
        ({"crossOrigin": True}, "it was made on another page"),
        ({"origin": "http://localhost.evil"}, "it was made on another page"),
        ({"challenge": encode_bytes(b"x" * 32)}, "it was made for other content"),
        ({"more": 1}, "it is forged"),
    ):
        parts = [decode_text(each) for each in assertion.split(".")]
        parts[1] = json.dumps({**json.loads(parts[1]), **change}).encode()
        assert find_assertion_problem(key, format_assertion(*parts), data) == problem


def _assertion_of(device: SoftPasskey, data: bytes) -> str:
    from cleared.trust.passkey_assertions import make_challenge

    options = {"rpId": "localhost", "challenge": encode_bytes(make_challenge(data)), "allowCredentials": []}
    given = json.loads(device.get(options, "http://localhost:8765"))
    return format_assertion(*(decode_text(given[n]) for n in ("authenticatorData", "clientDataJSON", "signature")))


@settings(max_examples=30)
@given(st.binary(max_size=200))
def test_base64url_is_read_as_it_was_written(data: bytes) -> None:
    assert decode_text(encode_bytes(data)) == data


@settings(max_examples=30)
@given(st.text(max_size=80) | st.binary(max_size=80).map(lambda each: f"{encode_bytes(each)}.e30.AA"))
def test_what_is_no_assertion_is_refused_without_an_error(text: str) -> None:
    key = format_passkey("localhost", b"\0" * 91)
    assert find_assertion_problem(key, text, b"")
    assert find_assertion_problem(text, "AA.AA.AA", b"")


@pytest.mark.parametrize(
    ("host", "origin", "counts"),
    [
        ("localhost", "http://localhost:8765", True),
        ("localhost", "https://localhost", True),
        ("books.test", "https://books.test", True),
        ("books.test", "https://books.test:8443", True),
        ("books.test", "http://books.test", False),
        ("books.test", "https://evil.books.test", False),
        ("books.test", "https://books.test.evil", False),
        ("books.test", "https://books.test@evil", False),
        ("books.test", "https://books.test:x", False),
        ("books.test", "https://books.test/", False),
        ("books.test", None, False),
        ("books.test", "null", False),
    ],
)
def test_only_pages_of_its_name_count(host: str, origin: object, counts: bool) -> None:
    assert is_origin_of(host, origin) is counts
