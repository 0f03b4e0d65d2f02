"""Findings about a dialogue of slot filling: requests, what it failed by, misheard acts."""

from collections.abc import Mapping
from typing import Any

from dialgym.language.acts import Act, Hypotheses, print_act
from dialgym.tasks.findings import Findings, Labelled, misheard
from dialgym.tasks.slot_filling.domain.ontology import NAME, NONE
from dialgym.tasks.slot_filling.goal_talk import talk_of
from dialgym.tasks.slot_filling.rewards import succeeded
from dialgym.tasks.slot_filling.types import SlotFillingState


def findings_of(task: Any, state: SlotFillingState) -> Findings:
    """Success in the one domain (see `succeeded`), its share of answered requests, and the rest."""
    domain, told = task.domain.ontology.domain, state.user_state.requests
    success = succeeded(state.user_state, task.domain.database, task.fidelity != "pydial")
    requests = {slot: value is not None for slot, value in told.items() if slot != NAME}
    share = sum(requests.values()) / len(requests) if requests else -1.0
    return Findings(
        {domain: {"success": float(success), "answered": share}},
        {f"{domain} {slot}": answered for slot, answered in requests.items()},
        [] if success else [f"{domain}: {_failure(state)}"],
        state.misheard,
        talk_of(task, state),
    )


def findings_of_domains(own: Mapping[str, Findings], success: Mapping[str, bool]) -> Findings:
    """Those of a dialogue about several domains, by the domains' names."""
    served = {
        name: {**measures, "success": float(success.get(name, False))}
        for name, each in own.items()
        for measures in each.domains.values()
    }
    return Findings(
        served,
        {request: told for each in own.values() for request, told in each.requests.items()},
        [f"{name}: not served" for name, measures in served.items() if not measures["success"]],
        [mistake for each in own.values() for mistake in each.misheard],
    )


def _failure(state: SlotFillingState) -> str:
    user = state.user_state
    if user.requests.get(NAME) in (None, NONE):
        return "no row named"
    return "requests unanswered" if user.open_requests() else "another row than was wanted"


def note_misheard(state: SlotFillingState, said: Act, heard: Hypotheses) -> None:
    """Note the user's act if the likeliest hypothesis is another one."""
    if heard and not heard[0][0].same(said):
        state.misheard += misheard([_labelled(said)], [_labelled(heard[0][0])])


def _labelled(act: Act) -> Labelled:
    return f"{act.type}({','.join(item.slot for item in act.items)})", print_act(act)
