"""What a change has its agent emit is shown as what the agents that listen make of it."""

from __future__ import annotations

from harness import Workspace
from proposing import propose

SETTLES = (
    '"""\nname: settles\ntrigger: event\nevent: [till.*]\ngrants: [journal.write, ctx.read, git.commit]\n"""\n'
    'p = ctx_event()["payload"] or {}\n'
    'if p.get("go"):\n'
    '    journal_add_double(date="2025-02-01", description="Till", debit_account=3200, credit_account=1010,\n'
    '                       amount=p["amount"], status="auto-confirmed")\n'
    'git_commit("settle")\n'
)
SENDS = '"""\nname: sends\n"""\nctx_emit("till.closed", {"total": 1})\n'


def test_the_card_says_who_listens_and_what_they_would_do(posted: Workspace) -> None:
    ws = posted
    for name, text in (("settles", SETTLES), ("sends", SENDS)):
        ws.put(f"agents/{name}.py", text)
        ws.commit(f"agents/{name}.py", *ws.approve(f"agents/{name}.py"))
    ws.put("agents/sends.py", SENDS.replace('{"total": 1}', '{"go": True, "amount": "500.00"}'))
    card = "\n".join(propose(ws, "sends")["card"])
    assert "would have done the same" not in card
    assert "That wakes settles (till.closed), which would do otherwise: 1 entry: from 1010" in card, card
    assert "to 3200 Member draws, without asking you" in card
    ws.put("agents/sends.py", SENDS.replace('{"total": 1}', '{"total": 2}'))
    card = "\n".join(propose(ws, "sends")["card"])
    assert "That wakes settles (till.closed), which would do the same as before." in card, card
