"""Findings about a dialogue of slot filling: requests, what it failed by, misheard acts."""

from dialgym.language.acts import Act, Hypotheses, print_act
from dialgym.tasks.findings import Findings, Labelled, misheard
from dialgym.tasks.slot_filling.domain.ontology import NAME, NONE
from dialgym.tasks.slot_filling.types import SlotFillingState


def findings_of(state: SlotFillingState, domain: str, success: bool) -> Findings:
    """Success in the one domain, its share of answered requests, and the rest."""
    told = state.user_state.requests
    requests = {slot: value is not None for slot, value in told.items() if slot != NAME}
    share = sum(requests.values()) / len(requests) if requests else -1.0
    return Findings(
        {domain: {"success": float(success), "answered": share}},
        {f"{domain} {slot}": answered for slot, answered in requests.items()},
        [] if success else [f"{domain}: {_failure(state)}"],
        state.misheard,
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
