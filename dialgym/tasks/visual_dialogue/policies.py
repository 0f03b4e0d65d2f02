"""Scripted speakers of visual dialogues: the answerer, and questioners of graded skill.

Questioners know only what they have heard, and the rules of the game; but for `people`, who ask
what was asked about that very image of VisDial.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dialgym.errors import finite_number, one_of, share
from dialgym.io.cache import PerTask
from dialgym.simulators import EachReplies
from dialgym.tasks.generators import by_halves, by_skill
from dialgym.tasks.visual_dialogue.answers import AnswerBook
from dialgym.tasks.visual_dialogue.pool import SceneBook
from dialgym.tasks.visual_dialogue.questions import Question, all_questions, text
from dialgym.tasks.visual_dialogue.retrieval import RetrievalQuestioner
from dialgym.tasks.visual_dialogue.task import VisualDialogue
from dialgym.tasks.visual_dialogue.types import STOP, VisualState

Generator = np.random.Generator
SURE = 0.9
"""Posterior of the best scene from which a greedy questioner stops, where it may."""
TIE = 1e-9
STOPS = 0.1
"""Probability of stopping of policies that do not look ahead."""


class SceneAnswerer:
    """The answerer that the task's setting names."""

    def reply(self, task: VisualDialogue, state: VisualState, rng: Generator) -> str:
        """See `dialgym.simulators.Speaker`; what is too long is cut."""
        return task.answerer.reply(task, state, rng)[: task.facts.longest["user"]]

    def reply_many(
        self, task: VisualDialogue, states: Sequence[VisualState], rngs: Sequence[Generator]
    ) -> list[str]:
        """See `dialgym.simulators.BatchSpeaker`."""
        many = getattr(task.answerer, "reply_many", None)
        if many is None:
            return [self.reply(task, state, rng) for state, rng in zip(states, rngs)]
        return [text[: task.facts.longest["user"]] for text in many(task, states, rngs)]


class RandomSceneQuestioner(EachReplies):
    """Any question of the pool; all are as likely."""

    def reply(self, task: VisualDialogue, state: VisualState, rng: Generator) -> str:
        questions = task.pool.questions
        if not questions:
            raise ValueError(
                f"policy 'random' of {task.name}: {type(task.pool).__name__} has no questions to "
                "choose from. Give another policy."
            )
        if _may_stop(task) and rng.random() < STOPS:
            return STOP
        return questions[int(rng.integers(len(questions)))]


class GreedySceneQuestioner(EachReplies):
    """The question whose answer tells most about which scene it is, for what it costs.

    That is the expected fall of the entropy of what the exact guesser believes, over all ways to
    answer, by the expected cost with its penalty (1 and the penalty where an answer costs
    nothing); ties are broken at random. It stops, where it may, when one scene has more than nine
    tenths of the posterior.

    Args:
        kinds: ``"all"``; ``"open"``: no questions of yes and no; ``"yes-no"``: no others.
        found: how many bits it is worth that the scene is found by the next answer.
    """

    def __init__(self, kinds: str = "all", found: float = 0.0) -> None:
        one_of("kinds", kinds, ("all", "open", "yes-no"), "GreedySceneQuestioner")
        self.kinds, self.found = kinds, finite_number("found of Greedy", found)
        self._banks, self._first = PerTask(), PerTask()

    def reply(self, task: VisualDialogue, state: VisualState, rng: Generator) -> str:
        if _may_stop(task) and task.by_answers(state).max() > SURE:
            return STOP
        best = self._best(task, state)
        return task.pool.questions[int(best[rng.integers(len(best))])]

    def _best(self, task: VisualDialogue, state: VisualState) -> np.ndarray:
        """The places of the best questions; remembered for each caption at the beginning."""
        if state.history:
            return self._search(task, state)
        known: dict[str, np.ndarray] = self._first.setdefault(task, {})
        caption = state.lines[0].text
        if caption not in known:
            known[caption] = self._search(task, state)
        return known[caption]

    def _search(self, task: VisualDialogue, state: VisualState) -> np.ndarray:
        if task not in self._banks:
            bank = Bank.of(_book(task, "greedy").answers)
            self._banks[task] = bank, np.array([task.scoring.counts(said) for said in bank.texts])
        bank, punished = self._banks[task]
        believed = task.by_answers(state)
        gain, texts = bank.information(believed)
        if self.found:
            gain += self.found * bank.found(believed, task.posterior(state))
        fines = np.bincount(bank.text_question, texts * punished) * task.scoring.yes_no
        scores = gain / ((task.scoring.cost or 1.0) + fines)
        if self.kinds != "all":
            scores = np.where(bank.yes_no == (self.kinds == "yes-no"), scores, -1.0)
        return np.flatnonzero(scores >= scores.max() - TIE)


class Bank(NamedTuple):
    """All questions with their answers, one after another: C contents, T texts, E pairs of them."""

    content: np.ndarray  # (Q, n) int64, into C
    content_question: np.ndarray  # (C,) int64, into Q
    content_bits: np.ndarray  # (C,) entropy of the ways to put each content
    texts: tuple[str, ...]  # T
    text_question: np.ndarray  # (T,) int64, into Q
    pair_content: np.ndarray  # (E,) int64
    pair_text: np.ndarray  # (E,) int64
    pair_chance: np.ndarray  # (E,) how likely the text is by the content
    yes_no: np.ndarray  # (Q,) bool: whether it can be answered by yes and no

    @classmethod
    def of(cls, book: AnswerBook) -> "Bank":
        """Of all questions about some scenes."""
        questions = all_questions()
        answers = [book.answers(question) for question in questions]
        contents = np.cumsum([0] + [len(a.chances) for a in answers])
        texts = np.cumsum([0] + [len(a.texts) for a in answers])
        pairs = [np.nonzero(a.chances) for a in answers]
        bits = [-(a.chances * np.log2(np.maximum(a.chances, 1e-300))).sum(1) for a in answers]
        return cls(
            np.stack([a.content + start for a, start in zip(answers, contents)]),
            np.repeat(np.arange(len(answers)), np.diff(contents)),
            np.concatenate(bits),
            tuple(said for a in answers for said in a.texts),
            np.repeat(np.arange(len(answers)), np.diff(texts)),
            np.concatenate([rows + start for (rows, _), start in zip(pairs, contents)]),
            np.concatenate([columns + start for (_, columns), start in zip(pairs, texts)]),
            np.concatenate([a.chances[pair] for a, pair in zip(answers, pairs)]),
            np.array([question.yes_no for question in questions]),
        )

    def information(self, posterior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bits (Q,) that each question is expected to tell, H(answer) - H(answer | scene), and how
        likely each of the texts (T,) is as its answer."""
        possible = np.flatnonzero(posterior)
        weights = np.tile(posterior[possible], len(self.content))
        places = self.content[:, possible].ravel()
        mass = np.bincount(places, weights, len(self.content_question))
        pairs = self.pair_chance * mass[self.pair_content]
        texts = np.bincount(self.pair_text, pairs, len(self.texts))
        surprise = -texts * np.log2(np.maximum(texts, 1e-300))
        heard = np.bincount(self.text_question, surprise, len(self.content))
        put = np.bincount(self.content_question, mass * self.content_bits, len(self.content))
        return np.maximum(heard - put, 0.0), texts

    def found(self, believed: np.ndarray, posterior: np.ndarray) -> np.ndarray:
        """(Q,) how likely the answer to each question lets the true scene be the only first one.

        Args:
            believed: (n,) what the guesser believes, by which it ranks.
            posterior: (n,) how likely each scene is the true one.
        """
        possible, questions = np.flatnonzero(believed), len(self.content)
        places = self.content[:, possible].ravel()
        weights = np.tile(believed[possible], questions)
        best = np.zeros(len(self.content_question))  # of each content, its best scene
        np.maximum.at(best, places, weights)
        first = weights >= best[places] * (1 - TIE)
        firsts = np.bincount(places, first, len(best))
        chance = np.bincount(places, np.tile(posterior[possible], questions) * first, len(best))
        score = best[self.pair_content] * self.pair_chance
        most = np.zeros(len(self.texts))  # of each answer, its best content
        np.maximum.at(most, self.pair_text, score)
        top = (score >= most[self.pair_text] * (1 - TIE)) & (score > 0)
        alone = np.bincount(self.pair_text, top * firsts[self.pair_content], len(most)) == 1
        right = top * chance[self.pair_content] * self.pair_chance
        by_text = np.bincount(self.pair_text, right, len(most)) * alone
        return np.bincount(self.text_question, by_text, questions)


KINDS = {"exist": 0.4, "check": 0.3, "relation": 0.05, "count": 0.1, "describe": 0.02, "ask": 0.13}
"""Shares of the kinds of questions of the human-like questioner, mostly of yes and no."""
OFF_TOPIC = 0.02
"""Factor of questions about something that has not come up."""
IN_DETAIL = 0.1
"""Factor of questions for something of a kind and a colour."""


class HumanLikeSceneQuestioner(EachReplies):
    """Asks as people might: mostly yes/no questions, nothing twice, and what something is like
    when it has come up. It does not work out what it could know by now.
    """

    def __init__(self) -> None:
        self._questions = all_questions()
        kinds = [question.kind for question in self._questions]
        self._weights = np.array([KINDS[kind] / kinds.count(kind) for kind in kinds])
        detailed = [sum(map(bool, question.about)) > 1 for question in self._questions]
        self._weights[detailed] *= IN_DETAIL
        self._places = {text(q): i for i, q in enumerate(self._questions)}
        self._topics = np.array([_topics(question) for question in self._questions])  # (Q, 2)

    def reply(self, task: VisualDialogue, state: VisualState, rng: Generator) -> str:
        book = _book(task, "human-like")
        if _may_stop(task) and state.history and rng.random() < STOPS:
            return STOP
        come_up = ["", *_come_up(state)]
        weights = np.where(np.isin(self._topics, come_up).all(1), 1.0, OFF_TOPIC) * self._weights
        asked = [said for said, _ in state.history if said in self._places]
        weights[[self._places[said] for said in asked]] = 0.0
        return book.questions[int(rng.choice(len(weights), p=weights / weights.sum()))]


class SceneMixture(EachReplies):
    """A `GreedySceneQuestioner` with probability `smart`, else a `RandomSceneQuestioner`.

    Args:
        smart: a number from 0 to 1.
    """

    def __init__(self, smart: float = 0.5) -> None:
        self.smart = share("smart of random-mixture", smart)
        self.parts = RandomSceneQuestioner(), GreedySceneQuestioner()

    def reply(self, task: VisualDialogue, state: VisualState, rng: Generator) -> str:
        return self.parts[int(rng.random() < self.smart)].reply(task, state, rng)


def _come_up(state: VisualState) -> list[str]:
    """The words of the caption and the answers, and of questions that were answered by yes."""
    heard = [state.lines[0].text]
    for said, answer in state.history:
        heard.append(f"{said} {answer}" if answer.startswith("yes") else answer)
    return [word.removesuffix("s") for line in heard for word in line.split()]


def _topics(question: Question) -> tuple[str, str]:
    """Topic that has to have come up before one asks what it is like; empty for nothing."""
    if question.kind in ("exist", "count"):
        return "", ""
    first, second = question.about, question.other
    return first.category or first.colour or "", (second and second.category) or ""


def _may_stop(task: VisualDialogue) -> bool:
    return task.scoring.mode == "agent_stops"


def _book(task: VisualDialogue, policy: str) -> SceneBook:
    """The generated scenes of a task; a ValueError where it has none."""
    if isinstance(task.pool, SceneBook):
        return task.pool
    raise ValueError(
        f"policy {policy!r} of {task.name}: expected generated scenes; got "
        f"{type(task.pool).__name__}. Give pool='scenes', or another policy."
    )


def greedy_open() -> GreedySceneQuestioner:
    """The best question that is not answered by yes or no."""
    return GreedySceneQuestioner("open")


def greedy_yes_no() -> GreedySceneQuestioner:
    """The best question that is answered by yes or no."""
    return GreedySceneQuestioner("yes-no")


def greedy_find() -> GreedySceneQuestioner:
    """The best question where it is worth ten bits that the scene is found."""
    return GreedySceneQuestioner(found=10.0)


def people() -> RetrievalQuestioner:
    """The questions that people have asked about that very image."""
    return RetrievalQuestioner(own=True)


graded, branching = by_skill(
    GreedySceneQuestioner, HumanLikeSceneQuestioner, RandomSceneQuestioner, SceneMixture
)
halves = by_halves(GreedySceneQuestioner, RandomSceneQuestioner)
