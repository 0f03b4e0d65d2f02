"""Points that a policy leaves to the best response to its partner, in the same dialogues."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dialgym.experiments.evaluate import evaluate
from dialgym.experiments.result import Result
from dialgym.experiments.statistics import Estimate, format_estimate, mean_estimate
from dialgym.rollouts.player import make_dialogue
from dialgym.views.speakers import other_party

SIMULATOR = "simulator"


class Shortfall(NamedTuple):
    """A policy beside the best response to its partner.

    Attributes:
        partner: its name.
        own, best: mean returns.
        gap: of the means, with a 95 % interval over the dialogues, which are the same for both.
    """

    partner: str
    own: float
    best: float
    gap: Estimate

    @property
    def share(self) -> float:
        """Return as a share of the best one."""
        return self.own / self.best

    def __str__(self) -> str:
        return (
            f"with {self.partner}: {format_estimate(self.gap, 2)} short of the best response, "
            f"whose return is {self.best:.2f}; {100 * self.share:.1f} % of it"
        )


def shortfall(result: Result, env_id: str) -> Shortfall:
    """Let the best response to the simulator of a result play its dialogues too.

    The greatest shortfall over several partners is a policy's exploitability by them: what it loses
    at most by not knowing who it plays with. The best response knows that, and the values of both.

    Args:
        result: of `evaluate`.
        env_id: the environment.

    Raises:
        ValueError: no best response is known, as to a partner that draws its acts.
    """
    own = result[env_id]
    partner, best = best_response(env_id, result.env_kwargs)
    there = evaluate(best, env_id, own.returns.shape[1], result.seeds, result.env_kwargs)[env_id]
    gap = mean_estimate([there.returns - own.returns])
    return Shortfall(partner, own.mean_return, there.mean_return, gap)


def describe_shortfalls(results: Sequence[Result]) -> Iterator[str]:
    """Describe what each result is short of in each of its environments; see `shortfall`."""
    for result in results:
        for env_id in result.by_id:
            yield f"{result.name} {shortfall(result, env_id)}"


def best_response(env_id: str, settings: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The partner that settings name, and the policy that is the best response to it.

    Raises:
        ValueError: none is known.
    """
    dialogue = make_dialogue(env_id, settings)
    task, learner = dialogue.task, dialogue.learner
    known: Mapping[str, Mapping[str, Any]] = getattr(task, "best_responses", {})
    partner = settings.get(SIMULATOR) or next(iter(task.speakers[other_party(task, learner)]))
    if not isinstance(partner, str) or partner not in known:
        names = ", ".join(known) or f"none in {task.name}"
        raise ValueError(
            f"best response: expected a simulator to which one is known ({names}); got {partner!r}."
        )
    return partner, known[partner]
