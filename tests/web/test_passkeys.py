"""Passkeys: registered by a link, they sign in and sign what is decided; checked without any extra."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from harness import Workspace, chase, copy_books, take_ok
from soft_passkey import SoftPasskey, answer, confirm, fields_of, is_asked, options_of, register_device, sign_in
from web_client import Page, Server, inner_server

from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.proposals.passkey_registration import SHOWN, read_passkeys, register_passkey, remove_passkey
from cleared.trust.passkey_records import Passkey
from cleared.web.passkey_invitations import invited

pytestmark = pytest.mark.slow


@pytest.fixture
def server(posted: Workspace) -> Iterator[Server]:
    with inner_server(posted.root) as server:
        yield server


def register(ws: Workspace, server: Server, device: SoftPasskey, name: str = "Ana") -> Passkey:
    host = open_workspace(ws.root)
    with invited(ws.root, name) as invitation:
        page = server.send("POST", "/passkeys/new", [("code", invitation.code)])
        made = device.create(options_of(page), server.url)
        page = server.send("POST", "/passkeys/new", [*fields_of(page), ("answer", made)])
        assert page.status == 200, page.text
        new = invitation.read_result()
    assert new is not None
    with expecting({SHOWN: new.digest_for(name)}):
        return register_passkey(host, name, new)


def test_a_device_is_registered_signs_in_and_signs_a_decision(server: Server, posted: Workspace) -> None:
    """Whichever of the three algorithms it knows."""
    for kind in ("eddsa", "rs256", "es256"):
        device = SoftPasskey(kind)
        passkey = register(posted, server, device)
        assert sign_in(server, device).status == 303
    queue = server.get("/queue")
    before = posted.head()
    page = server.submit(queue, "/queue", ("choice", "confirm"))
    assert is_asked(page) and "The passkey of Ana" in page.text and posted.head() == before
    assert "Approve: ACME INVOICE 12" in page.text
    page = answer(server, device, page)
    assert "Confirmed: ACME INVOICE 12" in page.text
    message = posted.git("log", "-1", "--format=%B")
    assert f"Key: {passkey.key}" in message and "By: Ana" in message and "Shown: " in message
    posted.in_order()


def test_a_row_that_a_card_offers_is_taken_and_its_proposal_comes_next(server: Server, posted: Workspace) -> None:
    """The passkey signs the decision; the proposal decides nothing, and its card comes then."""
    device = SoftPasskey()
    register(posted, server, device)
    posted.drop("february.csv", chase(*((f"02/0{n}/2025", f"COFFEE HOUSE {n}{n}", f"-{n}.80") for n in range(3, 7))))
    posted.run("ingest")
    posted.ok("queue", "correct", *(f"2025-02-00{n}" for n in (1, 2, 3)), "--account", "5070")
    card = next(each["id"] for each in posted.cards() if each["entry_id"] == "2025-02-004")
    sign_in(server, device)
    [offered] = re.findall(r'value="(always:[^"]*)"', server.get(f"/queue?card={card}").body)
    asked = server.submit(server.get(f"/queue?card={card}"), "/queue", ("choice", unescape(offered)))
    assert is_asked(asked), asked.text
    page = answer(server, device, asked)
    assert "Corrected: COFFEE HOUSE 66" in page.text and "P1: Change ingest" in page.text, page.text
    page = server.submit(page, "/queue", ("choice", "approve"))
    page = answer(server, device, page)
    assert "P1" in page.text and card not in [each["id"] for each in posted.cards()]
    assert "COFFEE HOUSE" in posted.read("agents/ingest.py")
    posted.in_order()


def rounds(server: Server, device: SoftPasskey) -> Page:
    """Signed in, and asked to sign the approval of the first card."""
    sign_in(server, device)
    return server.submit(server.get("/queue"), "/queue", ("choice", "confirm"))


def test_an_answer_counts_for_what_it_was_asked_for_alone(server: Server, posted: Workspace) -> None:
    """Replays: for another card, another verb, again, in another session."""
    device = SoftPasskey()
    register(posted, server, device)
    asked = rounds(server, device)
    given = device.get(options_of(asked), server.url)
    fields = dict(fields_of(asked))
    before = posted.head()
    reject = {**fields, "choice": "reject", "outcome": "personal", "answer": given}
    page = server.follow(server.send("POST", "/queue", [*reject.items()]))
    assert is_asked(page) and posted.head() == before  # asked again, for the rejection
    page = server.follow(server.send("POST", "/queue", [*(fields | {"answer": given}).items()]))
    assert is_asked(page) and posted.head() == before  # each question is answered once
    again = dict(fields_of(page))
    page = server.follow(server.send("POST", "/queue", [*(again | {"answer": given}).items()]))
    assert "made for other content" in page.text or is_asked(page)
    assert posted.head() == before
    sign_in(server, device)
    other = server.get("/queue").fields("token")[0]
    asked = server.submit(server.get("/queue"), "/queue", ("choice", "confirm"))
    sign_in(server, device)
    token = server.get("/queue").fields("token")[0]
    assert token != other
    stolen = dict(fields_of(asked)) | {"token": token, "answer": device.get(options_of(asked), server.url)}
    page = server.follow(server.send("POST", "/queue", [*stolen.items()]))
    assert is_asked(page) and posted.head() == before


def test_what_a_wrong_device_or_page_signs_does_not_count(server: Server, posted: Workspace) -> None:
    """Wrong origin, wrong name, user verification missing, nobody there, another key; at a decision and signing in."""
    device, other = SoftPasskey(counts=False), SoftPasskey(counts=False)
    register(posted, server, device)
    before = posted.head()

    def decide(text: str, **how: str) -> None:
        page = answer(server, device, rounds(server, device), **how)
        assert text in page.text and posted.head() == before, page.text

    decide("made on another page", origin="http://localhost.evil.test")
    decide("made on another page", origin="http://evil.test")
    decide("made on another page", origin="http://localhost:1")  # its name is the same, and any page may ask
    decide("made for another name", host="evil.test")
    for how, text in (
        ({"origin": "https://evil.test"}, "made on another page"),
        ({"host": "evil.test"}, "made for another name"),
    ):
        assert text in sign_in(server, device, **how).text and server.cookie == ""
    asked = rounds(server, device)
    for flags, text in ((0x01, "did not make sure who"), (0x04, "nobody was there")):
        device.flags = flags
        page = answer(server, device, asked)
        assert text in page.text and posted.head() == before
        assert text in sign_in(server, device).text and server.cookie == ""
        device.flags = 0x05
        asked = rounds(server, device)
    device.key = other.key
    assert "it is forged" in answer(server, device, asked).text and posted.head() == before
    assert "it is forged" in sign_in(server, device).text
    assert "not registered here" in sign_in(server, other).text


def test_a_registration_needs_its_link_and_a_device_that_makes_sure_who_uses_it(
    server: Server, posted: Workspace
) -> None:
    device = SoftPasskey()
    page = server.send("POST", "/passkeys/new", [("code", "x" * 43)])
    assert page.status == 403 and "does not count" in page.text
    with invited(posted.root, "Ana") as invitation:
        for flags, origin in ((0x01, server.url), (0x05, "http://evil.test")):
            page = server.send("POST", "/passkeys/new", [("code", invitation.code)])
            device.flags = flags
            made = device.create(options_of(page), origin)
            page = server.send("POST", "/passkeys/new", [*fields_of(page), ("answer", made)])
            assert page.status == 403 and "cannot be taken" in page.text
        device.flags = 0x05
        page = server.send("POST", "/passkeys/new", [("code", invitation.code)])
        made = device.create(options_of(page), server.url)
        filled = [*fields_of(page), ("answer", made)]
        assert server.send("POST", "/passkeys/new", filled).status == 200
        assert server.send("POST", "/passkeys/new", filled).status == 403
        assert server.send("POST", "/passkeys/new", [("code", invitation.code)]).status == 403
        assert invitation.read_result() is not None
    assert invitation.read_result() is None
    assert server.send("POST", "/passkeys/new", [("code", invitation.code)]).status == 403
    assert read_passkeys(open_workspace(posted.root)) == []  # without the terminal nothing is registered
    page = server.send("GET", "/login", headers={"Host": f"127.0.0.1:{server.port}"})
    assert "Sign in with a passkey" not in page.text


def test_a_short_code_is_typed_and_cannot_be_guessed(server: Server, posted: Workspace) -> None:
    """Too many wrong ones, and none that can be guessed counts; a link still does."""

    def show(code: str) -> int:
        return server.send("POST", "/passkeys/new", [("code", code)]).status

    with invited(posted.root, "Ana", is_typed=True) as typed, invited(posted.root, "Ana") as link:
        assert len(typed.code) == 9 and show(f" {typed.code.lower()} ") == 200
        assert [show(f"AAAA-AAA{n}") for n in range(10)] == [403] * 10
        assert show(typed.code) == 403 and show(link.code) == 200


def test_a_removed_passkey_neither_decides_nor_signs_in(server: Server, posted: Workspace) -> None:
    """Nor does one whose record is brought back with git."""
    device = SoftPasskey()
    passkey = register(posted, server, device)
    with_it = posted.head()
    asked = rounds(server, device)
    remove_passkey(open_workspace(posted.root), passkey.id[:6])
    posted.git("checkout", with_it, "--", "agents/approvals/passkeys")
    posted.git("commit", "-qm", "bring it back")
    before = posted.head()
    page = answer(server, device, asked)
    assert posted.head() == before and "Sign in" in page.text
    page = server.get("/login")
    assert "Sign in with a passkey" not in page.text
    assert read_passkeys(open_workspace(posted.root)) == []


def test_a_removal_that_was_taken_back_by_git_counts_in_other_clones(
    server: Server, posted: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A clone that gets both commits at once has never seen the branch without the record."""
    passkey = register(posted, server, SoftPasskey())
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("CLEARED_HOME", str(tmp_path / "another"))
        before = Workspace(copy_books(posted.root, tmp_path / "before"))
        take_ok(before, "trust", "--yes")
        assert [each.id for each in read_passkeys(open_workspace(before.root))] == [passkey.id]
    remove_passkey(open_workspace(posted.root), passkey.id[:6])
    posted.git("revert", "--no-edit", "HEAD")
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("CLEARED_HOME", str(tmp_path / "another"))
        before.git("pull", "-q", "--ff-only", str(posted.root), "HEAD")
        assert read_passkeys(open_workspace(before.root)) == []
        elsewhere.setenv("CLEARED_HOME", str(tmp_path / "third"))
        fresh = Workspace(copy_books(posted.root, tmp_path / "fresh"))
        take_ok(fresh, "trust", "--yes")
        assert read_passkeys(open_workspace(fresh.root)) == []
    again = register(posted, server, SoftPasskey())
    assert [each.id for each in read_passkeys(open_workspace(posted.root))] == [again.id]


def test_a_record_that_somebody_pushed_does_not_count(server: Server, posted: Workspace, tmp_path: Path) -> None:
    """Neither one that a stranger signed, nor one of this machine's that was altered."""
    from msgspec.structs import replace

    from cleared.trust import approval_record, passkey_records
    from cleared.trust.keys import Key, _key_of, new_secret

    mine, theirs = SoftPasskey(), SoftPasskey()
    passkey = register(posted, server, mine)
    own = approval_record.parse_record(posted.read(passkey_records.passkey_path(passkey.key)).encode())
    stranger: Key = _key_of(new_secret())
    with invited(posted.root, "Eve") as invitation:
        page = server.send("POST", "/passkeys/new", [("code", invitation.code)])
        made = theirs.create(options_of(page), server.url)
        server.send("POST", "/passkeys/new", [*fields_of(page), ("answer", made)])
        new = invitation.read_result()
    assert new is not None
    about = {"name": "Ana", "key": new.key, "credential": new.credential, "counter": 0}
    path = passkey_records.passkey_path(new.key)
    altered = replace(own, path=path, policy=about)
    for record in (approval_record.sign_record(replace(altered, signature=""), stranger), altered):
        posted.put(path, record.render().decode())
        posted.commit(path, message="a passkey")
        assert [each.key for each in read_passkeys(open_workspace(posted.root))] == [passkey.key]
        assert "not registered here" in sign_in(server, theirs).text


def test_a_counter_that_goes_back_is_refused(server: Server, posted: Workspace) -> None:
    device = SoftPasskey()
    register(posted, server, device)
    assert sign_in(server, device).status == 303
    asked = rounds(server, device)
    device.counter = 1
    before = posted.head()
    page = answer(server, device, asked)
    assert "went back" in page.text and posted.head() == before
    device.counter = 0
    assert "went back" in sign_in(server, device).text and server.cookie == ""


def test_undo_and_later_with_a_passkey(server: Server, posted: Workspace) -> None:
    device = SoftPasskey()
    register(posted, server, device)
    confirm(server, device, rounds(server, device))
    page = server.submit(server.get("/queue"), "/queue/undo")
    page = confirm(server, device, page, "/queue/undo")
    assert "Taken back" in page.text
    assert posted.git("log", "-1", "--format=%B").count("Key: passkey:") == 1
    page = server.submit(server.get("/queue"), "/queue", ("choice", "later"))
    assert "Put behind the others" in page.text
    posted.in_order()


def propose_hello(ws: Workspace) -> None:
    ws.put("agents/hello.py", '"""\nname: hello\n"""\nctx_log("hello")\n')
    ws.ok("agent", "propose", "hello")


def test_what_runs_is_approved_with_a_passkey_that_is_asked_again(ws: Workspace) -> None:
    """The key has no passphrase: signed in with a code nobody could approve it. What was shown is what is approved."""
    device = SoftPasskey()
    passkey = register_device(ws.root, device)
    propose_hello(ws)
    with inner_server(ws.root) as server:
        sign_in(server, device)
        queue, before = server.get("/queue"), ws.head()
        asked = server.submit(queue, "/queue", ("choice", "approve"), ("number", "P1"))
        assert is_asked(asked) and ws.head() == before
        page = confirm(server, device, asked)
        assert "is live now" in page.text, page.text
    assert ws.trailers()["Key"] == passkey.key
    ws.run("hello")
    ws.in_order()


def test_with_a_passphrase_that_is_asked_for_too(ws: Workspace) -> None:
    """This machine's key signs the record of what runs; the passkey signs the decision."""
    from cleared.trust import key_protection, passphrase

    device = SoftPasskey()
    passkey = register_device(ws.root, device)
    propose_hello(ws)
    with passphrase.asking_with(lambda prompt: "correct horse battery staple"):
        key_protection.protect_key()
    with inner_server(ws.root) as server:
        sign_in(server, device)
        number = ("number", "P1")
        page = server.submit(server.get("/queue"), "/queue", ("choice", "approve"), number)
        assert 'name="passphrase"' in page.body and not is_asked(page)
        wrong = server.submit(server.get("/queue"), "/queue", ("choice", "approve"), number, ("passphrase", "no"))
        assert not is_asked(wrong) and "live now" not in wrong.text
        assert "not the passphrase of your key" in wrong.text and wrong.fields("choice") == ["approve"]
        fields = [("choice", "approve"), number, ("passphrase", "correct horse battery staple")]
        page = server.submit(server.get("/queue"), "/queue", *fields)
        assert "correct horse" not in page.body
        assert "is live now" in confirm(server, device, page).text
    passphrase.forget_secrets()
    assert ws.trailers()["Key"] == passkey.key


def test_what_takes_two_takes_the_passkeys_of_two_people(posted: Workspace) -> None:
    """Nor do two keys of one person count as two people's."""
    ana, ben, other = SoftPasskey(), SoftPasskey(), SoftPasskey()
    keys = {
        device: register_device(posted.root, device, name).key
        for device, name in ((ana, "Ana"), (ben, "Ben"), (other, "Eve"))
    }
    own = posted.json("queue", "reviewers")["key"]
    named = (("Ana", own), ("Ana", keys[ana]), ("Ben", keys[ben]))
    rules = "".join(f"  - {{name: {name}, key: {key!r}}}\n" for name, key in named)
    posted.put("config.yaml", f"{posted.read('config.yaml').rstrip()}\nreviewers:\n{rules}")
    take_ok(posted, "config", "approve")
    posted.ok("config", "set", "thresholds.two_person", "500")
    invoice = next(each["id"] for each in posted.cards() if each["entry_id"] == "2025-01-002")

    def press(server: Server, device: SoftPasskey, verb: str) -> str:
        sign_in(server, device)
        page = server.submit(server.get(f"/queue?card={invoice}"), "/queue", ("choice", verb))
        return confirm(server, device, page).text

    with inner_server(posted.root) as server:
        before = posted.head()
        assert "only reviewers may decide" in press(server, other, "confirm") and posted.head() == before
        assert "you are the first" in press(server, ana, "confirm")
        assert posted.trailers()["Key"] == keys[ana]
        done = posted("queue", "agree", invoice)
        assert done.code == 3 and "you are the first of two" in done.err
        assert "Agree with" not in server.get(f"/queue?card={invoice}").text, "the first is not offered it"
        assert "Agreed" in press(server, ben, "agree")
    assert posted.trailers()["Key"] == keys[ben] and posted.trailers()["By"] == "Ben"
    assert next(e for e in posted.entries() if e["entry_id"] == "2025-01-002")["status"] == "user-confirmed"
    posted.in_order()


def test_a_passkey_is_of_one_workspace(ws: Workspace, tmp_path: Path) -> None:
    """Where several are served it opens only those it is registered in, and no other is named."""
    from harness import copy_books

    other = Workspace(copy_books(ws.root, tmp_path / "other"))
    device = SoftPasskey()
    register_device(ws.root, device)
    with inner_server(ws.root, other.root) as server:
        sign_in(server, device)
        listed = server.get("/")
        assert f"/w/{ws.root.name}/" in listed.body and "/w/other/" not in listed.body
        assert server.get(f"/w/{ws.root.name}/").status == 200
        for path in ("/w/other/", "/w/other/queue", "/w/other/live", "/w/other/loop/tree.json"):
            page = server.get(path)
            assert page.status in (303, 401, 403) and page.headers.get("location", "/login") == "/login", path


def test_an_answered_question_signs_nobody_in_again(server: Server, posted: Workspace) -> None:
    """Nor does one that was never asked; nothing of it has to be remembered for that."""
    device = SoftPasskey(counts=False)
    register(posted, server, device)
    server.forget()
    page = server.get("/login")
    question = page.fields("question")[0]
    fields = [("question", question), ("answer", device.get(options_of(page), server.url))]
    assert server.send("POST", "/login", fields).status == 303
    assert server.send("POST", "/login", fields).status == 403
    for forged in ("", "a.9e9.b", question[:-1] + ("0" if question[-1] != "0" else "1"), "é"):
        assert server.send("POST", "/login", [("question", forged), fields[1]]).status == 403


def propose_latent(ws: Workspace) -> None:
    """It posts to 3200 for a text that no dry run has."""
    body = 'if ctx_today() > "2031-01-01":\n    ctx_log("later")\nctx_log("hello")'
    ws.put("agents/hello.py", f'"""\nname: hello\n"""\n{body}\n')
    ws.ok("agent", "propose", "hello")


def test_what_no_dry_run_showed_takes_its_number_typed(ws: Workspace) -> None:
    """A tap alone does not approve it, nor does the passkey's touch; no key or swipe is bound to the button."""
    device = SoftPasskey()
    register_device(ws.root, device)
    propose_latent(ws)
    with inner_server(ws.root) as server:
        sign_in(server, device)
        queue, before = server.get("/queue"), ws.head()
        assert "Type P1 to approve it all the same" in queue.text and 'data-key="a"' not in queue.body
        page = confirm(server, device, server.submit(queue, "/queue", ("choice", "approve")))
        assert "one key does not approve it" in page.text and ws.head() == before
        fields = [("choice", "approve"), ("number", "p1")]
        page = confirm(server, device, server.submit(server.get("/queue"), "/queue", *fields))
        assert "is live now" in page.text, page.text
    ws.run("hello")


def test_the_number_goes_along_with_a_passphrase(ws: Workspace) -> None:
    from cleared.trust import key_protection, passphrase

    device = SoftPasskey()
    register_device(ws.root, device)
    propose_latent(ws)
    with passphrase.asking_with(lambda prompt: "correct horse battery staple"):
        key_protection.protect_key()
    with inner_server(ws.root) as server:
        sign_in(server, device)
        page = server.submit(server.get("/queue"), "/queue", ("choice", "approve"), ("number", "P1"))
        assert 'name="passphrase"' in page.body and page.fields("number") == ["P1"]
        fields = [("choice", "approve"), ("number", "P1"), ("passphrase", "correct horse battery staple")]
        page = server.submit(server.get("/queue"), "/queue", *fields)
        assert "is live now" in confirm(server, device, page).text
    passphrase.forget_secrets()


def test_the_forms_of_the_books_are_signed_too(server: Server, posted: Workspace) -> None:
    """Also one that takes two commits, a new bank account: the passkey signs each."""
    device = SoftPasskey()
    passkey = register(posted, server, device)
    sign_in(server, device)
    opening = server.get("/books/opening")
    page = server.submit(opening, "/books/opening", ("digest", opening.fields("digest")[0]))
    assert is_asked(page) and "1 opening balance booked" in confirm(server, device, page, "/books/opening").text
    fields = (("account", "1010"), ("date", "2025-01-31"), ("balance", "2446.40"))
    page = server.submit(server.get("/books/reconcile"), "/books/reconcile", *fields)
    assert is_asked(page) and "agrees with the bank" in confirm(server, device, page, "/books/reconcile").text
    page = server.upload(server.get("/"), {"new.csv": b"Day,What,Sum\n2025-01-31,RENT,-4.00\n"}, ("way", "import"))
    (address,) = set(re.findall(r'action="[^"]*(/bank/files/[^"]*)"', page.body))
    page = server.get(f"{address}?type=savings&ledger_account=1025&name=Reserve")
    form = page.body.partition('id="add"')[2].partition("</form>")[0]
    page = server.follow(server.send("POST", address, re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)))
    assert is_asked(page), page.text
    page = confirm(server, device, page, address)
    assert "new.csv; 0 booked, 1 for you" in page.text, page.text
    subjects = posted.git("log", "-8", "--format=%s%n%(trailers:key=Key)")
    assert "Reserve" in subjects and subjects.count(passkey.key) >= 4, subjects
    posted.in_order()


def test_settings_that_wait_are_approved_with_a_passphrase(posted: Workspace) -> None:
    """As they were shown: what was edited since is refused, and nothing is approved without the passphrase."""
    from cleared.trust import key_protection, passphrase

    phrase = "correct horse battery staple"
    posted.put("config.yaml", posted.read("config.yaml").replace("auto_confirm: 0.95", "auto_confirm: 0.97"))
    with passphrase.asking_with(lambda prompt: phrase):
        key_protection.protect_key()
    passphrase.forget_secrets()
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        page = server.get("/settings")
        fields = [("token", page.fields("token")[0]), ("digest", page.fields("digest")[0])]
        fields += [("key", name) for name in page.fields("key")]
        asked = server.follow(server.send("POST", "/settings", fields))
        assert 'name="passphrase"' in asked.body and "Approve settings" in asked.text
        posted.put("config.yaml", posted.read("config.yaml").replace("auto_confirm: 0.97", "auto_confirm: 0.50"))
        stale = server.follow(server.send("POST", "/settings", [*fields, ("passphrase", phrase)]))
        assert stale.status == 409 and "has changed since it was shown" in stale.text, stale.text
        posted.put("config.yaml", posted.read("config.yaml").replace("auto_confirm: 0.50", "auto_confirm: 0.97"))
        done = server.follow(server.send("POST", "/settings", [*fields, ("passphrase", phrase)]))
        assert "1 setting approved" in done.text and "Wait for approval" not in done.text
    passphrase.forget_secrets()
