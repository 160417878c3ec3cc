"""The queue on the page: decided as in the terminal, by the same one place."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape

import pytest
from harness import Workspace, chase
from web_client import Server, page_server

pytestmark = pytest.mark.slow


@pytest.fixture
def server(posted: Workspace) -> Iterator[Server]:
    with page_server(posted) as server:
        yield server


def statuses(ws: Workspace) -> dict[str, str]:
    return {entry["entry_id"]: entry["status"] for entry in ws.entries()}


def test_a_card_is_approved_another_corrected_and_both_are_taken_back(server: Server, posted: Workspace) -> None:
    queue = server.get("/queue")
    assert queue.status == 200 and "2 cards to decide" in queue.text and "ACME INVOICE 12" in queue.text
    queue = server.submit(queue, "/queue", ("choice", "confirm"))
    assert "Confirmed: ACME INVOICE 12" in queue.text and "1 card to decide" in queue.text and "COFFEE" in queue.text
    matches = server.get(f"/queue/accounts?card={queue.fields('card')[0]}&q=meals")
    assert "5070" in matches.text and "5060" not in matches.text
    card = queue.fields("card")[0]
    queue = server.submit(queue, "/queue", ("choice", "correct"), ("account", "5070"))
    assert "Corrected: COFFEE" in queue.text and "Nothing waits for you." in queue.text
    late = server.get(f"/queue/accounts?card={card}&q=meals")
    assert late.status == 200 and "5070" not in late.text, "what is typed can be on its way while the card is decided"
    assert statuses(posted)["2025-01-004"] == "user-corrected"
    assert posted.git("log", "-2", "--format=%s").split("\n")[1] == "confirm: 2025-01-002 ACME INVOICE 12"
    for _ in range(2):
        queue = server.submit(queue, "/queue/undo")
        assert "Taken back" in queue.text
    assert "2 cards to decide" in queue.text
    posted.in_order()


def test_undo_takes_back_no_decision_that_was_not_seen(server: Server, posted: Workspace) -> None:
    queue = server.submit(server.get("/queue"), "/queue", ("choice", "confirm"))
    posted.ok("queue", "correct", "2025-01-004", "--account", "5070")
    before = posted.head()
    refusal = server.submit(queue, "/queue/undo")
    assert "the last decision is another one by now: correct: 2025-01-004 COFFEE" in refusal.text
    assert posted.head() == before
    form = [("token", refusal.fields("token")[0])]
    for act in ("", "HEAD", "0" * 40, "--all", queue.fields("act")[0]):
        refusal = server.follow(server.send("POST", "/queue/undo", [*form, ("act", act)]))
        assert "is another one by now" in refusal.text and posted.head() == before
    assert "Taken back: 2025-01-004" in server.submit(server.get("/queue"), "/queue/undo").text


def test_undo_stands_under_what_it_takes_back(server: Server, posted: Workspace) -> None:
    """*Later* is undone by the button under its message, and not the decision before it; a button that was left
    standing in another tab takes back nothing else."""
    decided = server.submit(server.get("/queue"), "/queue", ("choice", "confirm"))
    before = statuses(posted)
    later = server.submit(decided, "/queue", ("choice", "later"))
    assert "Undo: Put behind the others" in later.text
    old = server.submit(decided, "/queue/undo")
    assert "the last decision is another one by now: log: skipped" in old.text and statuses(posted) == before
    undone = server.submit(later, "/queue/undo")
    assert "Taken back: " in undone.text and statuses(posted) == before
    assert "Undo: confirm: 2025-01-002 ACME INVOICE 12" in undone.text
    assert "Taken back: 2025-01-002" in server.submit(undone, "/queue/undo").text
    posted.in_order()


def test_what_the_owner_took_needs_no_receipt(server: Server, posted: Workspace) -> None:
    assert "Together 53.60 USD" in server.get("/receipts").text
    coffee = server.get(f"/queue?card={posted.cards()[1]['id']}")
    server.submit(coffee, "/queue", ("choice", "reject"), ("outcome", "personal"))
    receipts = server.get("/receipts")
    assert "Together 49.10 USD" in receipts.text and "COFFEE" not in receipts.text


def test_the_code_of_a_card_that_an_undo_opened_is_that_of_the_entry_before(server: Server, posted: Workspace) -> None:
    """A decision has posted the entry that stands again; the script made the one in whose place it stands."""
    coffee = server.get(f"/queue?card={posted.cards()[1]['id']}")
    for outcome in ("personal", "suspense"):
        rejected = server.submit(coffee, "/queue", ("choice", "reject"), ("outcome", outcome))
        coffee = server.submit(rejected, "/queue/undo")
    code = server.get(f"/queue/{coffee.fields('card')[0]}/code")
    assert code.status == 200 and "agents/ingest.py" in code.text
    again = posted.cards()[1]["entry_id"]
    assert "Stands again in the place of" in server.get(f"/books/entries/{again}").text


def test_who_goes_back_to_a_decided_card_is_told_that_it_is_another_one(server: Server, posted: Workspace) -> None:
    first, second = server.get("/queue").fields("card")[0], posted.cards()[1]["id"]
    server.submit(server.get(f"/queue?card={first}"), "/queue", ("choice", "confirm"))
    page = server.get(f"/queue?card={first}")
    assert "does not wait any more. This is another one." in page.text and page.fields("card")[0] == second
    assert "This is another one." not in server.get(f"/queue?card={second}").text
    server.submit(page, "/queue", ("choice", "confirm"))
    last = server.get(f"/queue?card={second}").text
    assert "does not wait any more." in last and "Nothing waits for you." in last and "another one" not in last


def test_what_was_decided_before_a_setting_is_taken_back(server: Server, posted: Workspace) -> None:
    """The setting, which undo leaves, is named with its own way back; a decision made since keeps the button from
    taking back another one."""
    server.submit(server.get("/queue"), "/queue", ("choice", "confirm"))
    posted.ok("config", "set", "review.remind_after", "1h")
    queue = server.get("/queue")
    assert "The last decision: config: review.remind_after = 1h" in queue.text and "--older" not in queue.text
    assert "Undo: confirm: 2025-01-002 ACME INVOICE 12" in queue.text
    undone = server.submit(queue, "/queue/undo")
    assert "Taken back: 2025-01-002" in undone.text and "2 cards to decide" in undone.text
    assert posted.json("config", "get", "review.remind_after") == "1h"
    server.submit(undone, "/queue", ("choice", "confirm"))
    posted.ok("config", "set", "review.remind_after", "2h")
    old = server.get("/queue")
    posted.ok("queue", "approve", posted.cards()[0]["id"])
    posted.ok("config", "set", "review.remind_after", "3h")
    before = statuses(posted)
    assert "is another one by now" in server.submit(old, "/queue/undo").text and statuses(posted) == before
    posted.in_order()


def test_what_was_decided_before_what_git_took_back_is_taken_back(server: Server, posted: Workspace) -> None:
    """No button offers to take back a decision of which nothing is left."""
    posted.ok("queue", "approve", "2025-01-002")
    posted.ok("queue", "approve", "2025-01-004")
    posted.git("revert", "--no-edit", "HEAD")
    queue = server.get("/queue")
    assert f"It was taken back already by git, in commit {posted.head()[:7]}." in queue.text
    assert "Undo: confirm: 2025-01-002" in queue.text and "Undo: confirm: 2025-01-004" not in queue.text
    assert "Taken back: 2025-01-002" in server.submit(queue, "/queue/undo").text


def test_a_suggestion_is_taken_with_one_tap(server: Server, posted: Workspace) -> None:
    """What earlier decisions say stands on the card with its evidence; what is no account is refused."""
    posted.ok("queue", "correct", "2025-01-004", "--account", "5070")
    posted.drop("february.csv", chase(("02/03/2025", "COFFEE 0231", "-4.80")))
    posted.run("ingest")
    [card] = [c["id"] for c in posted.cards() if c["entry_id"] == "2025-02-001"]
    queue = server.get(f"/queue?card={card}")
    assert "1 of 1 COFFEE went to 5070, last 2025-01-10" in queue.text and 'data-key="y"' in queue.body
    wrong = server.submit(queue, "/queue", ("choice", "suggested:x"))
    assert "choose an account" in wrong.text and statuses(posted)["2025-02-001"] == "pending-review"
    queue = server.submit(queue, "/queue", ("choice", "suggested:5070"))
    assert "Corrected: COFFEE 0231" in queue.text
    assert posted.json("journal", "balance", "5070")[0]["balance"] == "9.30"


def test_what_was_similar_before_agrees_with_what_is_suggested(server: Server, posted: Workspace) -> None:
    """The newest of the decisions that the sentence counts are the rows below it; an exception is among both."""
    days = [f"02/{day:02d}/2025" for day in range(3, 13)]
    posted.drop("february.csv", chase(*((day, f"ZEPHYR LLC {n:04d}", "-1080.00") for n, day in enumerate(days))))
    posted.run("ingest")
    decided = sorted(entry["entry_id"] for entry in posted.entries() if "ZEPHYR" in entry["description"])
    [card] = [each["id"] for each in posted.cards() if each["entry_id"] == decided[-1]]
    for entry_id in decided[:8]:
        posted.ok("queue", "correct", entry_id, "--account", "5070")
    text = server.get(f"/queue?card={card}").text
    assert "8 of 8 ZEPHYR LLC went to 5070, last 2025-02-10" in text, text
    similar = text.partition("Similar before")[2].partition("Approve")[0]
    assert similar.count("5070 Meals") == 4 and similar.count("pending-review") == 1, similar  # five are shown
    assert "2025-02-10 1,080.00 5070 Meals user-corrected ZEPHYR LLC 0007" in similar, similar
    posted.ok("queue", "correct", decided[8], "--account", "5060")
    text = server.get(f"/queue?card={card}").text
    similar = text.partition("Similar before")[2].partition("Approve")[0]
    assert "8 of 9 ZEPHYR LLC went to 5070, last 2025-02-10; others to 5060" in text, text
    assert similar.count("5070 Meals") == 4 and "2025-02-11 1,080.00 5060" in similar, similar


def test_what_was_not_shown_is_not_decided(server: Server, posted: Workspace) -> None:
    """A page that is older than the card: refused, and said so."""
    queue = server.get("/queue")
    before = posted.head()
    fields = [("token", queue.fields("token")[0]), ("card", queue.fields("card")[0]), ("digest", "0" * 64)]
    answer = server.follow(server.send("POST", "/queue", [*fields, ("choice", "confirm")]))
    assert "has changed since it was shown" in answer.text and posted.head() == before
    posted.ok("queue", "approve", queue.fields("card")[0])
    before = posted.head()
    answer = server.submit(queue, "/queue", ("choice", "confirm"))
    assert "Not done" in answer.text and "is settled" in answer.text and posted.head() == before


def test_a_form_that_is_refused_is_answered_so(server: Server) -> None:
    """PAGE 7: with 409 and in words, where its answer is the next page; no script, and it leads there as ever."""
    queue = server.get("/queue")
    fields = [(name, queue.fields(name)[0]) for name in ("token", "card")]
    fields += [("digest", "0" * 64), ("choice", "confirm")]
    answer = server.send("POST", "/queue", [*fields, ("at-once", "yes")])
    assert answer.status == 409 and "has changed since it was shown" in answer.text
    assert "has changed since it was shown" in server.follow(server.send("POST", "/queue", fields)).text
    fields[2] = ("digest", queue.fields("digest")[0])
    done = server.send("POST", "/queue", [*fields, ("at-once", "yes")])
    assert done.status == 200 and "Confirmed: ACME" in done.text


def test_a_choice_that_there_is_not_decides_nothing(server: Server, posted: Workspace) -> None:
    before = posted.head()
    for choice in ("zzz", "", "reject-all"):
        page = server.submit(server.get("/queue"), "/queue", ("choice", choice), ("reason", "because"))
        assert "the form names no such choice" in page.text and page.status < 500
    assert posted.head() == before


def test_a_split_and_a_rejection_with_its_outcome(server: Server, posted: Workspace) -> None:
    queue = server.submit(server.get("/queue"), "/queue", ("choice", "correct"), ("split", "meals=1 4020="))
    assert "the split cannot be taken" in queue.text and "to decide" in queue.text
    before = posted.head()
    refused = server.submit(queue, "/queue", ("choice", "correct"), ("split", "4010=-9999 4020="))
    assert "4010=-9999 is more than the -1,500.00 to be split" in refused.text and posted.head() == before
    assert "Amounts of both signs are meant" in refused.text
    parts = (("part_account", "4010"), ("part_amount", "9,999"), ("part_account", "4020"), ("part_amount", ""))
    refused = server.submit(queue, "/queue", ("choice", "correct"), ("note", "two jobs"), *parts)
    assert "4010=-9999.00 is more than the -1,500.00 to be split" in refused.text and posted.head() == before
    assert 'value="9,999"' in refused.body and 'value="two jobs"' in refused.body, "what was typed stays"
    parts = (("part_account", "4010"), ("part_amount", "1000"), ("part_account", "4020"), ("part_amount", ""))
    queue = server.submit(refused, "/queue", ("choice", "correct"), *parts)
    assert "Corrected: ACME" in queue.text
    queue = server.submit(server.get("/queue"), "/queue", ("choice", "reject"), ("reason", "mine"))
    assert "what is that line" in queue.text
    card = queue.fields("card")[0]
    queue = server.submit(queue, "/queue", ("choice", "reject"), ("outcome", "personal"))
    assert "Rejected" in queue.text and card not in queue.fields("card")
    posted.in_order()


def test_a_group_is_decided_at_once(ws: Workspace) -> None:
    rows = [(f"01/{day:02}/2025", f"SHELL OIL {day}00", f"-{day}.00") for day in range(6, 10)]
    ws.drop("fuel.csv", chase(*rows))
    ws.run("ingest")
    with page_server(ws) as server:
        queue = server.get("/queue")
        assert "All 4 like it" in queue.text
        group = server.get(f"/queue/{queue.fields('card')[0]}/group")
        assert all(f"SHELL OIL {day}00" in group.text for day in range(6, 10))
        searched = server.get(f"/queue/{queue.fields('card')[0]}/group?q=bank")
        assert "Bank and processing fees 5080" in searched.text and "Meals" not in searched.text
        pairs = [
            pair
            for each in zip(group.fields("card"), group.fields("digest"), strict=True)
            for pair in zip(("card", "digest"), each, strict=True)
        ][:8]
        token = ("token", group.fields("token")[0])
        before = int(ws.git("rev-list", "--count", "HEAD"))
        queue = server.follow(server.send("POST", "/queue", [token, *pairs, ("choice", "confirm")]))
    assert "Confirmed: 4 cards" in queue.text and "Nothing waits" in queue.text
    assert int(ws.git("rev-list", "--count", "HEAD")) == before + 1


def test_a_group_of_many_is_decided_in_parts(ws: Workspace) -> None:
    ws.drop("fuel.csv", chase(*((f"01/{1 + n // 20:02}/2025", f"SHELL OIL {n:03}", "-7.00") for n in range(252))))
    ws.run("ingest")
    with page_server(ws) as server:
        group = server.get(f"/queue/{server.get('/queue').fields('card')[0]}/group")
        assert "2 more like these come next" in group.text and "1,750.00" in group.text
        for count, then in ((250, "Confirmed: 250 cards"), (2, "Confirmed: 2 cards")):
            cards = list(dict.fromkeys(group.fields("card")))
            assert len(cards) == count
            digests = group.fields("digest")[:count]
            pairs = [
                each for pair in zip(cards, digests, strict=True) for each in zip(("card", "digest"), pair, strict=True)
            ]
            fields = [("token", group.fields("token")[0]), *pairs, ("choice", "confirm")]
            group = server.follow(
                server.send("POST", "/queue", [*fields, *(("then", n) for n in group.fields("then")[:1])])
            )
            assert then in group.text
    assert "Nothing waits" in group.text
    ws.in_order()


def test_a_long_bank_file_is_shown_around_the_row(ws: Workspace) -> None:
    ws.drop("fuel.csv", chase(*((f"01/{1 + n // 80:02}/2025", f"SHELL OIL {n:04}", "-7.00") for n in range(1_200))))
    ws.run("ingest")
    with page_server(ws) as server:
        cards = {card["title"]: card["id"] for card in ws.cards()}
        last = next(name for title, name in cards.items() if "SHELL OIL 1199" in title)
        shown = server.get(f"/queue/{last}/file")
    assert (
        "of 1201" in shown.text and "▸" in shown.text and "SHELL OIL 1199" in shown.text and len(shown.body) < 300_000
    )


def test_a_bank_file_is_shown_at_the_row_of_the_card_whatever_is_in_it(ws: Workspace) -> None:
    """Fault: what other programs take for the end of a line (three dots of Windows, say) moved the mark down."""
    rows = [("01/03/2025", "SHELL\x85 OIL", "-7.00"), ("01/04/2025", "BP OIL", "-8.00")]
    ws.drop("fuel.csv", chase(*rows).encode("latin-1"))
    ws.run("ingest")
    (card,) = (card["id"] for card in ws.cards() if "BP OIL" in card["title"])
    with page_server(ws) as server:
        shown = server.get(f"/queue/{card}/file").text
    assert '▸ 3 DEBIT,01/04/2025,"BP OIL"' in shown, shown


def test_a_group_takes_the_suggestion_of_its_cards(posted: Workspace) -> None:
    posted.ok("queue", "correct", "2025-01-004", "--account", "5070")
    posted.drop("more.csv", chase(*((f"02/{day:02}/2025", "COFFEE", f"-{day}.00") for day in (3, 4))))
    posted.run("ingest")
    card = next(c["id"] for c in posted.cards() if "COFFEE" in c["title"])
    with page_server(posted) as server:
        group = server.get(f"/queue/{card}/group")
        assert "Take 5070 Meals, all 2" in group.text
        pairs = [
            pair
            for each in zip(group.fields("card"), group.fields("digest"), strict=True)
            for pair in zip(("card", "digest"), each, strict=True)
        ][:4]
        chosen = [("token", group.fields("token")[0]), *pairs, ("choice", "suggested:5070")]
        assert "Corrected: 2 cards" in server.follow(server.send("POST", "/queue", chosen)).text
    posted.in_order()


def test_what_came_of_a_decision_is_said_where_it_was_made(server: Server, posted: Workspace) -> None:
    """Another tab that looks for news meanwhile does not take the message away."""
    queue = server.get("/queue")
    fields = [(name, queue.fields(name)[0]) for name in ("token", "card", "digest")]
    answer = server.send("POST", "/queue", [*fields, ("choice", "confirm")])
    assert "Confirmed" not in server.send("GET", "/queue", headers={"HX-Request": "true"}).text
    assert "Confirmed: ACME" in server.follow(answer).text


def test_put_off_a_card_comes_last(server: Server, posted: Workspace) -> None:
    queue = server.submit(server.get("/queue"), "/queue", ("choice", "later"))
    assert "Put behind the others" in queue.text
    assert "COFFEE" in queue.text and "ACME INVOICE 12" in queue.text.split("Next")[1]


def test_an_agent_is_not_approved_with_an_open_key(ws: Workspace) -> None:
    """What changes what runs asks for the passphrase of the key each time; a key without one cannot be asked for."""
    path = ws.put("agents/hello.py", '"""\nname: hello\n"""\nctx_log("hello")\n')
    assert path.exists()
    ws.ok("agent", "propose", "hello")
    with page_server(ws) as server:
        queue = server.get("/queue")
        assert "cleared key protect" in queue.text and 'value="approve"' not in queue.body
        code = server.get(f"/queue/{queue.fields('card')[0]}/code")
        assert '+ctx_log("hello")' in code.text
        before = ws.head()
        answer = server.submit(queue, "/queue", ("choice", "approve"))
        assert answer.status == 409 and "the key has none" in answer.text and ws.head() == before
        queue = server.submit(server.get("/queue"), "/queue", ("choice", "decline"), ("reason", "not now"))
        assert "is rejected" in queue.text


def test_bank_texts_are_text(ws: Workspace) -> None:
    """Markup, formulas, direction marks and long texts are shown, and do nothing."""
    texts = ["<script>alert(1)</script>", "{{ 7 * 7 }}", "x\u202egpj", '"onload="', "a" * 3000]
    ws.drop("evil.csv", chase(*((f"01/{6 + n:02}/2025", text, "-4.00") for n, text in enumerate(texts))))
    ws.run("ingest")
    with page_server(ws) as server:
        listed = server.get("/books/entries?month=2025-01")
        cards = [server.get(f"/queue?card={card['id']}") for card in ws.cards()]
    assert len(cards) == len(texts)
    for page in (listed, *cards):
        assert page.status == 200 and "<script>alert" not in page.body and "\u202e" not in page.body
        assert '"onload' not in page.body.replace("&#34;onload", "")
    assert "<script>alert(1)</script>" in listed.text and "x\\u202egpj" in listed.text and "{{ 7 * 7 }}" in listed.text


def test_b32_a_card_offers_the_row_and_its_proposal_comes_next(server: Server, posted: Workspace) -> None:
    rows = [(f"02/0{n}/2025", f"COFFEE HOUSE {n}{n}", f"-{n}.80") for n in range(3, 7)]
    posted.drop("february.csv", chase(*rows))
    posted.run("ingest")
    posted.ok("queue", "correct", *(f"2025-02-00{n}" for n in (1, 2, 3)), "--account", "5070")
    card = next(c["id"] for c in posted.cards() if c["entry_id"] == "2025-02-004")
    queue = server.get(f"/queue?card={card}")
    offered = "COFFEE HOUSE (money out, up to 20) → 5070"
    assert "Always 5070 Meals" in queue.text and f"{offered} from now on, as you decided 3 of 3 times." in queue.text
    other = server.submit(queue, "/queue", ("choice", "always:COFFEE → 3200"))
    assert "Not done: the card offers another row by now" in other.text
    done = server.submit(server.get(f"/queue?card={card}"), "/queue", ("choice", f"always:{offered}"))
    assert "Corrected: COFFEE HOUSE 66" in done.text and "P1: Change ingest" in done.text, done.text
    assert [c["kind"] for c in posted.cards()].count("proposal") == 1


def test_a_proposal_comes_first_and_its_effects_are_a_table_on_demand(server: Server, posted: Workspace) -> None:
    """CARD 1: the same parts as in the terminal; before and after of each entry behind the words of its group."""
    text = posted.read("agents/ingest.py")
    posted.put(
        "agents/ingest.py", text.replace("VENDORS = [\n", 'VENDORS = [\n    ("COFFEE", "Coffee", 5070, 0.99),\n')
    )
    found = posted.json("agent", "propose", "ingest", "-m", "Coffee is meals")
    queue = server.get("/queue")
    page, html = queue.text, unescape(queue.body)
    assert "P1: Change ingest" in page and page.index("P1: Change ingest") < page.index("ACME INVOICE 12")
    assert all(section["title"] in page for section in found["sections"])
    table = html[html.index('<details class="part"') : html.index("</details>")]
    assert "<summary>1 entry: 5030 Uncategorised expense → 5070 Meals, and you are no longer asked" in table
    assert '<th scope="col">Before</th><th scope="col">After</th>' in table
    assert '<td data-label="Before">5030 Uncategorised expense; asks you;' in table
    assert '<td data-label="After">5070 Meals; without asking you; counterparty Coffee;' in table
    assert page.index("Coffee is meals") > page.index("Checked and passed"), "the proposer's words are last"


def test_a_proposal_that_was_put_off_waits_behind_the_others(server: Server, posted: Workspace) -> None:
    posted.put("agents/ingest.py", posted.read("agents/ingest.py") + "# a comment\n")
    posted.ok("agent", "propose", "ingest")
    queue = server.get("/queue")
    assert queue.fields("proposal")
    queue = server.submit(queue, "/queue", ("choice", "later"))
    assert not queue.fields("proposal") and "P1: Change ingest" in queue.text
