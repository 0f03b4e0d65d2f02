"""Scripted speakers of twenty questions: the answerer, and questioners of graded skill.

All of them know only what their side has seen. Questioners speak or choose acts: see `_Chooser`.
"""

from collections.abc import Sequence

import numpy as np

from dialgym.errors import finite_number, share
from dialgym.io.cache import PerTask
from dialgym.tasks.generators import by_halves, by_skill
from dialgym.tasks.twenty_questions.batch import beliefs_of
from dialgym.tasks.twenty_questions.search import Search
from dialgym.tasks.twenty_questions.task import TwentyQuestions
from dialgym.tasks.twenty_questions.types import NOTHING, REPLIES, TwentyQuestionsState

Generator = np.random.Generator
_SAME = 1e-9


class TableAnswerer:
    """Answers as the task's settings say: truly, or now and then wrongly or vaguely."""

    def reply(self, task: TwentyQuestions, state: TwentyQuestionsState, rng: Generator) -> str:
        return REPLIES[self.act(task, state, rng)]

    def act(self, task: TwentyQuestions, state: TwentyQuestionsState, rng: Generator) -> int:
        """See `dialgym.tasks.ActPolicy`."""
        true = task.true_answer(state)
        asked = NOTHING < state.codes[-1] < task.questions  # guesses are answered truly
        return task.beliefs.told(true, rng) if asked else true


class Truthful:
    """Answers truly, whatever the task's rates are."""

    def reply(self, task: TwentyQuestions, state: TwentyQuestionsState, rng: Generator) -> str:
        return REPLIES[task.true_answer(state)]


class _Chooser:
    """A questioner that chooses among the codes of questions and guesses."""

    def act(self, task: TwentyQuestions, state: TwentyQuestionsState, rng: Generator) -> int:
        """See `dialgym.tasks.ActPolicy`."""
        raise NotImplementedError

    def reply(self, task: TwentyQuestions, state: TwentyQuestionsState, rng: Generator) -> str:
        return task.said[self.act(task, state, rng)]


class RandomQuestioner(_Chooser):
    """Any question or guess, all equally likely."""

    def act(self, task: TwentyQuestions, state: TwentyQuestionsState, rng: Generator) -> int:
        return int(rng.integers(len(task.said)))


class GreedyQuestioner(_Chooser):
    """Questioner that asks for the most bits about the hidden thing; ties are broken at random.

    Of guesses and questions that tell as much it takes a guess, and with its last turn it guesses
    what is likeliest.
    """

    def act(self, task: TwentyQuestions, state: TwentyQuestionsState, rng: Generator) -> int:
        return best_code(task, task.posterior(state), state.turns, rng)

    def reply_many(
        self,
        task: TwentyQuestions,
        states: Sequence[TwentyQuestionsState],
        rngs: Sequence[Generator],
    ) -> Sequence[str]:
        """See `dialgym.simulators.BatchSpeaker`."""
        beliefs, turns = beliefs_of(task, states)
        gains = task.beliefs.gains(beliefs)
        codes = [
            _best(task, *each) for each in zip(beliefs, gains, turns.tolist(), rngs, strict=True)
        ]
        return [task.said[code] for code in codes]


def best_code(task: TwentyQuestions, belief: np.ndarray, turns: int, rng: Generator) -> int:
    """Question of `GreedyQuestioner` after `turns` utterances, believing in `belief` (K,)."""
    return _best(task, belief, task.beliefs.gains(belief), turns, rng)


def _best(
    task: TwentyQuestions, belief: np.ndarray, gains: np.ndarray, turns: int, rng: Generator
) -> int:
    if turns >= task.turns - 1 or gains.max() < _SAME:
        return task.questions + _draw(belief >= belief.max() - _SAME, rng)
    best = gains >= gains.max() - _SAME
    if best[task.questions :].any():
        best[: task.questions] = False
    return _draw(best, rng)


def _draw(allowed: np.ndarray, rng: Generator) -> int:
    """One of the places that are True."""
    places = np.flatnonzero(allowed)
    return int(places[rng.integers(len(places))])


class OptimalQuestioner(_Chooser):
    """The question or guess of the best expected return, by search over all dialogues.

    For small tables and answers without noise: see `Search`, which says when it gives up.

    Args:
        sets: most sets of things that are looked into.
    """

    def __init__(self, sets: int = 50_000) -> None:
        self.sets = sets
        self._searches = PerTask()

    def act(self, task: TwentyQuestions, state: TwentyQuestionsState, rng: Generator) -> int:
        left = np.flatnonzero(task.posterior(state))
        return self.search(task).best(left.tolist(), task.turns - state.turns)

    def search(self, task: TwentyQuestions) -> Search:
        """The search of a task, with what it has found before.

        Raises:
            ValueError: answers are noisy or vague.
        """
        if task.noise or task.vague:
            raise ValueError(
                f"optimal: expected a {task.name} with noise=0 and vague=0; got {task.noise} and "
                f"{task.vague}. Use the policy 'greedy'."
            )
        if task not in self._searches:
            self._searches[task] = Search(task.table.truth, self.sets)
        found: Search = self._searches[task]
        return found


class HumanLikeQuestioner(_Chooser):
    """Asks as people do: useful questions more often than useless ones, in wordings of all kinds.

    A question is drawn with weight exp(bits / temperature), in any of its wordings; where one thing
    is as likely as `sure`, or now and then before, a guess is drawn from what it believes.

    Args:
        temperature: in bits; the lower the more like `GreedyQuestioner`.
        sure: the least probability of the likeliest thing at which it guesses.
        early: the probability of a guess before that.
    """

    def __init__(self, temperature: float = 0.15, sure: float = 0.3, early: float = 0.05) -> None:
        self.temperature = finite_number("temperature of human-like", temperature)
        if self.temperature <= 0:
            raise ValueError(f"temperature of human-like must be above 0; got {temperature!r}.")
        self.sure, self.early = (
            share("sure of human-like", sure),
            share("early of human-like", early),
        )

    def act(self, task: TwentyQuestions, state: TwentyQuestionsState, rng: Generator) -> int:
        belief = task.posterior(state)
        last = state.turns == task.turns - 1
        if last or belief.max() >= self.sure or rng.random() < self.early:
            return task.questions + int(rng.choice(task.things, p=belief))
        gains = task.beliefs.gains(belief)[: task.questions]
        weights = np.exp((gains - gains.max()) / self.temperature)
        return int(rng.choice(task.questions, p=weights / weights.sum()))

    def reply(self, task: TwentyQuestions, state: TwentyQuestionsState, rng: Generator) -> str:
        code = self.act(task, state, rng)
        if code >= task.questions:
            names = task.table.names[code - task.questions]
            return f"is it {names[int(rng.integers(len(names)))]}?"
        wordings = task.table.questions[code]
        return wordings[int(rng.integers(len(wordings)))]


class QuestionMixture(_Chooser):
    """With probability `smart` what `GreedyQuestioner` says, else what `RandomQuestioner` does."""

    def __init__(self, smart: float = 0.5) -> None:
        self.smart = share("smart of random-mixture", smart)
        self.parts = RandomQuestioner(), GreedyQuestioner()

    def act(self, task: TwentyQuestions, state: TwentyQuestionsState, rng: Generator) -> int:
        return self.parts[int(rng.random() < self.smart)].act(task, state, rng)


class GuessingQuestioner(_Chooser):
    """Guesses only, what may still be it: the questioner that never asks."""

    def act(self, task: TwentyQuestions, state: TwentyQuestionsState, rng: Generator) -> int:
        return task.questions + int(rng.choice(task.things, p=task.posterior(state)))


graded, branching = by_skill(
    GreedyQuestioner, HumanLikeQuestioner, RandomQuestioner, QuestionMixture
)
halves = by_halves(GreedyQuestioner, RandomQuestioner)
