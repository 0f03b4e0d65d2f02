"""`PlanningAgent`: acts that are chosen by playing the dialogue to its end in thought."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from agents.chat.act_agent import ActAgent, ActChooser, Generators
from dialgym.errors import whole_number
from dialgym.tasks.posterior import SupposesHidden


class PlanningAgent(ActChooser):
    """Takes, of acts that a model would choose, the one that simulated dialogues end best with.

    Each candidate is said in copies of the dialogue, which two models then play to the end; it is
    worth the mean of what the party gets there. In each copy something else is supposed of what
    the party is not told (`dialgym.tasks.posterior.SupposesHidden`), as likely as the model of the
    partner would then have said what the partner has said.

    It plays any task with acts, in act views and, by what they say, in others. Source: Lewis et al.
    (2017), section 6, whose rollouts are of words and by one model for both parties.

    Args:
        own: the model that candidates are drawn from, and that goes on in the party's place; as of
            `ActAgent`.
        partner: a model of the other party; one that chooses single acts by `agents.BeliefPolicy`,
            where something is hidden.
        candidates: acts that are drawn; the same act twice is one.
        rollouts: copies of the dialogue, the same suppositions for each candidate.

    Raises:
        FileNotFoundError, ValueError: as of `ActAgent`, or a number is not above 0.
    """

    waits = True  # many dialogues at once share the calls of the models

    def __init__(self, own: Any, partner: Any, candidates: int = 8, rollouts: int = 16) -> None:
        self.own, self.partner = ActAgent(own), ActAgent(partner)
        self.candidates = whole_number("candidates", candidates, "PlanningAgent")
        self.rollouts = whole_number("rollouts", rollouts, "PlanningAgent")

    def act_many(self, task: Any, states: Sequence[Any], rngs: Generators) -> list[Any]:
        found = [states[k] for k in range(len(rngs))]
        drawn = self._draw(task, found, rngs)
        several = [row for row, acts in enumerate(drawn) if len(acts) > 1]
        chosen = [acts[0] for acts in drawn]
        if several:
            open_, acts = ([column[row] for row in several] for column in (found, drawn))
            for row, place in zip(
                several, self._best(task, open_, acts, [rngs[k] for k in several])
            ):
                chosen[row] = drawn[row][place]
        return chosen

    def _draw(self, task: Any, states: Sequence[Any], rngs: Generators) -> list[list[Any]]:
        """The candidates in each dialogue, those that were drawn most first."""
        often = [(state, rng) for state, rng in zip(states, rngs) for _ in range(self.candidates)]
        drawn = np.array(self.own.act_many(task, *map(list, zip(*often))))
        found = []
        for acts in np.split(drawn, len(states)):
            different, counts = np.unique(acts, axis=0, return_counts=True)
            found.append(list(different[np.argsort(-counts, kind="stable")]))
        return found

    def _best(
        self, task: Any, states: list[Any], drawn: list[list[Any]], rngs: Generators
    ) -> list[int]:
        """The place of the best candidate in each of the dialogues of one party."""
        party = task.speaker(states[0])
        supposed = self._suppose(task, states, party, rngs)
        copies, acts, own = [], [], []
        for worlds, candidates, rng in zip(supposed, drawn, rngs):
            for candidate in candidates:
                copies += [world.copy() for world in worlds]
                acts += [candidate] * len(worlds)
                own += [rng] * len(worlds)
        texts = [task.acts[party].say(*each) for each in zip(copies, acts, own)]
        returns = self._played_out(task, copies, party, own, texts)
        worth = np.split(returns.reshape(-1, self.rollouts).mean(1), _ends(drawn))
        return [int(values.argmax()) for values in worth]

    # What may be hidden

    def _suppose(
        self, task: Any, states: list[Any], party: str, rngs: Generators
    ) -> list[list[Any]]:
        """`rollouts` dialogues for each, as they may be: drawn evenly by their probability."""
        every = [_suppositions(task, state, party) for state in states]
        logs = self._log_likelihoods(task, list(chain(*every)), party)
        found = []
        for worlds, own, rng in zip(every, np.split(logs, _ends(every)), rngs):
            shares = np.exp(own - own.max()).cumsum()
            at = (np.arange(self.rollouts) + rng.random()) / self.rollouts * shares[-1]
            rows = np.searchsorted(shares, at, side="right").clip(max=len(worlds) - 1)
            found.append([worlds[row] for row in rows])
        return found

    def _log_likelihoods(self, task: Any, states: list[Any], party: str) -> np.ndarray:
        """(n,) of all that the partner has said in each of n dialogues, by the partner's model."""
        found = np.zeros(len(states))
        if not isinstance(task, SupposesHidden):
            return found
        rules: Any = task
        again = [rules.begun(state) for state in states]
        said = [[u for u in rules.transcript(s, party) if not u.private] for s in states]
        rng = np.random.default_rng(0)  # only rules that draw something would take from it
        for place in range(max(map(len, said))):
            rows = [k for k, lines in enumerate(said) if place < len(lines)]
            other = [k for k in rows if said[k][place].speaker != party]
            if other:
                rates = self.partner.probabilities(rules, [again[k] for k in other])
                acts = rules.acts[said[other[0]][place].speaker]
                codes = [acts.read(again[k], said[k][place].text) for k in other]
                found[other] += np.log(rates[np.arange(len(other)), codes] + SMALL)
            for k in rows:
                rules.speak(again[k], said[k][place].text, rng)
        return found

    # Rollouts

    def _played_out(
        self, task: Any, states: list[Any], party: str, rngs: Generators, texts: list[str]
    ) -> np.ndarray:
        """(n,) what the party gets in n dialogues, of which each goes on with its text."""
        returns, going = np.zeros(len(states)), list(range(len(states)))
        while True:
            outcomes = [task.speak(states[k], text, rngs[k]) for k, text in zip(going, texts)]
            returns[going] += [outcome.rewards[party] for outcome in outcomes]
            going = [k for k, o in zip(going, outcomes) if not (o.terminated or o.truncated)]
            if not going:
                return returns
            said: dict[int, str] = {}
            for name in task.parties:
                model = self.own if name == party else self.partner
                rows = [k for k in going if task.speaker(states[k]) == name]
                if rows:
                    theirs = model.reply_many(
                        task, [states[k] for k in rows], [rngs[k] for k in rows]
                    )
                    said |= zip(rows, theirs)
            texts = [said[k] for k in going]


SMALL = 1e-6
"""Probability beside that of a model for what it thinks impossible."""


def _suppositions(task: Any, state: Any, party: str) -> Sequence[Any]:
    """All that a dialogue may be, as far as the party knows.

    Raises:
        ValueError: something is hidden, and the task cannot suppose it.
    """
    if isinstance(task, SupposesHidden):
        return task.suppositions(state, party)
    if task.facts.hidden.get(party):
        raise ValueError(
            f"PlanningAgent: expected a task that can suppose what the {party} is not told, as "
            f"dialgym.tasks.posterior.SupposesHidden has it; {task.name} hides "
            f"{', '.join(task.facts.hidden[party])}"
        )
    return [state]


def _ends(groups: Sequence[Sequence[Any]]) -> np.ndarray:
    """Ends of groups that lie one after the other, but for the last."""
    ends: np.ndarray = np.cumsum([len(group) for group in groups])[:-1]
    return ends
