"""``cleared improve``: what agents could do better, as persons decided."""

from __future__ import annotations

from cleared.base.terminal import escape_text, print_json, print_line, print_message
from cleared.cli.options import JsonOption, WorkspaceOption, open_host


def improve_agents(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Propose what follows from your decisions: rows for agents' tables, rows to take out, what contradicts itself.

    Each agent's changes are one proposal with their evidence, and each contradiction one card. Nothing becomes live by
    it, but for what self_improvement.approve lets through. No model is asked. The service does the same once a night
    where self_improvement.enabled is on.
    """
    from cleared.gate.proposals.improving import improve_agents as do

    done = do(open_host(workspace), is_asked=True)
    if json:
        print_json(done.to_dict())
        return
    for proposal in done.approved:
        print_line(f"{proposal.id} is live, as you decided: {', '.join(proposal.paths)}")
        print_line(f"  to take it back: cleared agent rollback {' '.join(proposal.agents)}")
    for improvement in done.confirmed:
        print_line(f"  {escape_text(improvement.says)}")
    for proposal in done.proposals:
        print_line(f"{proposal.id} waits as a card: cleared agent approve {proposal.id}, or in cleared review")
    for improvement in done.proposed:
        print_line(f"  {escape_text(improvement.says)}")
    for question in done.asked:
        print_line(f"asked: {escape_text(question.title)}")
    for line in done.findings:
        print_line(escape_text(line))
    for line in done.held:
        print_message(escape_text(line))
    if not done.proposed and not done.asked and not done.confirmed and not done.findings:
        print_line("Nothing new was learned.")
