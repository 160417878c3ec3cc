"""The state of agents as a domain: what the runtime is told of it."""

from __future__ import annotations

from typing import Final

from cleared.domains.domain import Domain, import_when_called

STATE: Final = Domain(
    name="state",
    about="Small values that each agent keeps from run to run.",
    record_noun=("kept value", "kept_values"),
    record_schema=import_when_called("cleared.records.agent_state.staged_state:describe_value_schema"),
    primitive_modules=("cleared.records.agent_state.state_primitives",),
    list_grants=import_when_called("cleared.records.agent_state.state_primitives:list_grants"),
    open=import_when_called("cleared.records.agent_state.staged_state:open_state"),
    opens_late=True,
    describe_number=import_when_called("cleared.records.agent_state.staged_state:count_values"),
    comparison=import_when_called("cleared.records.agent_state.staged_state:StateComparison"),
    audit=import_when_called("cleared.records.agent_state.staged_state:StateAudit"),
    redo=import_when_called("cleared.records.agent_state.redone_values:redo_values"),
    review=import_when_called("cleared.records.agent_state.state_review:StateReview"),
    list_checks=import_when_called("cleared.records.agent_state.staged_state:list_checks"),
)
