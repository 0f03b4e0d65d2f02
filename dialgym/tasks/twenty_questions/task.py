"""The rules of twenty questions."""

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from dialgym.errors import finite_number, one_of, unknown, whole_number
from dialgym.io.tables import fingerprint, locate
from dialgym.language import AnyText, Constraint, Utterance, WordTrie
from dialgym.language.text import CHARSET
from dialgym.rewards import Cost
from dialgym.tasks.base import SYSTEM, USER, Facts, Outcome, Task
from dialgym.tasks.briefs import choice_sentence, length_sentence, turns_sentence
from dialgym.tasks.posterior import entropy
from dialgym.tasks.splits import Secrets
from dialgym.tasks.twenty_questions.belief import Beliefs, normalised
from dialgym.tasks.twenty_questions.search import Search
from dialgym.tasks.twenty_questions.table import ARTICLES, BUILT_IN, load_table, normal
from dialgym.tasks.twenty_questions.types import (
    NO,
    NOTHING,
    REPLIES,
    UNCLEAR,
    YES,
    TwentyQuestionsState,
)
from dialgym.tasks.twenty_questions.understanding import Understanding, read_answer

ROOM = "dialgym.tasks.twenty_questions"
POLICIES = f"{ROOM}.policies"
STYLES = {"yes": "bold green", "no": "bold red", "I can't tell": "bright_black"}


class TwentyQuestions(Task):
    """Find out what the other one thinks of, by questions that have yes or no for an answer.

    The `user` thinks of a thing of a table, which it alone is told. The `system` asks, and the
    user answers ``yes``, ``no`` or ``I can't tell``; a guess is a question too: ``is it a cat?``.
    The dialogue is over (terminated) with the answer to the right guess, which is a success, or to
    the last of the `turns`.

    Questions: those of the table, a few hundred, in any of their wordings; guesses: ``is it``, an
    article, and any name of a thing. Other text is taken for the guess that it names (``my guess
    is cat``) or for the question with which it shares most words, if those are at least half of
    the words of both that matter; ``not``, ``without`` and ``never`` turn a question round. What is
    still not understood gets ``I can't tell``, and costs a turn. A user's text that begins with
    neither yes nor no means that it cannot tell. `dialgym.tasks.twenty_questions.understanding` has
    the rules.

    Rewards: -1 for each question, wrong guesses and what is not understood included; 0 for the
    right guess. Both parties get it, for they play together. Without a right guess the return is
    thus -20, as in LMRL-Gym.

    The default answerer does not know what the table has no answer to; else it is vague and noisy
    as the settings say, independently at each question. Guesses are judged by the rules, always
    truly. `posterior` is what one should believe of the hidden thing after such answers, exactly;
    it begins uniform.

    Acts: each question and each guess, with masks of what can tell something; the questioner
    observes the posterior and the probability of yes to each question. The answerer has three.

    Args:
        table: ``things`` (401 everyday things, 105 questions), ``animals`` (69, 52), ``cities``
            (147, 53), a file of rows (CSV, TSV, JSONL, Parquet) or ``hf:NAME`` of the hub;
            see `dialgym.tasks.twenty_questions.table.load_table`.
        items: keep only the first so many things of the table; None for all.
        questions: keep only so many questions, those that together tell most; None for all, of
            fewer `items` for those that tell anything, and nothing that another one tells.
        noise: the rate at which the answerer says the opposite of what is true, below 1/2.
        vague: the rate at which it says that it cannot tell.
        turns: questions in a dialogue.
        constraint: what action masks allow: ``"questions"`` (each question in its first wording,
            and guesses), or None (any text).
        longest: characters of an utterance of the questioner that are looked at, at least.
        split: the things that may be hidden: ``"train"``, ``"validation"`` or ``"test"``, by their
            first names (`dialgym.tasks.splits`); None for all. All may be guessed, and the scripted
            policies and `posterior` know no split.

    Options of reset: ``item``, the hidden thing, by any of its names, with or without its article;
    of the split if there is one.

    Versions:
        v0: the first, of dialgym 0.1.

    Raises:
        ValueError: a setting is not one of the above, or the table is not usable.

    Source: the game is that of LMRL-Gym (Abdulhai et al., 2023), with its rewards; there language
    models answer, here a table does, so that beliefs are exact. The built-in tables are our own.
    """

    name = "TwentyQuestions"
    how_to_play = {  # noqa: RUF012
        "system": "Find out what the other one thinks of, by questions that have yes or no for an "
        "answer: is it alive? A guess is a question too: is it a cat?",
        "user": "You think of something that the other one is to find out. Answer yes, no, or "
        "I can't tell.",
    }
    verbs = {"system": "ask(question)", "user": "answer(text)"}  # noqa: RUF012
    options = ("item",)
    tokenizer = "word"
    speakers = {  # noqa: RUF012
        USER: {
            "answerer": f"{POLICIES}:TableAnswerer",
            "truthful": f"{POLICIES}:Truthful",
        },
        SYSTEM: {
            "random": f"{POLICIES}:RandomQuestioner",
            "greedy": f"{POLICIES}:GreedyQuestioner",
            "optimal": f"{POLICIES}:OptimalQuestioner",
            "human-like": f"{POLICIES}:HumanLikeQuestioner",
            "random-mixture": f"{POLICIES}:QuestionMixture",
            "guesser": f"{POLICIES}:GuessingQuestioner",
        },
    }
    generators = {  # noqa: RUF012
        "graded": f"{POLICIES}:graded",
        "branching": f"{POLICIES}:branching",
        "halves": f"{POLICIES}:halves",
    }
    act_classes = {  # noqa: RUF012
        SYSTEM: f"{ROOM}.party_acts:QuestionerActs",
        USER: f"{ROOM}.party_acts:AnswererActs",
    }
    batches = {SYSTEM: (f"{POLICIES}:TableAnswerer", f"{ROOM}.batch:TwentyQuestionsBatch")}  # noqa: RUF012
    hidden_fields = {SYSTEM: ("item", "opening")}  # noqa: RUF012

    def __init__(
        self,
        table: str | PathLike[str] = "things",
        items: int | None = None,
        questions: int | None = None,
        noise: float = 0.0,
        vague: float = 0.0,
        turns: int = 20,
        constraint: str | None = "questions",
        longest: int = 80,
        split: str | None = None,
    ) -> None:
        one_of("constraint", constraint, ("questions", None), self.name)
        self.noise = _rate("noise", noise, 0.5)
        self.vague = _rate("vague", vague, 1.0)
        self.turns = whole_number("turns", turns, self.name)
        self.mask = constraint
        self.table = load_table(table, self.name).only(items, questions, self.name)
        self.things, self.questions = self.table.truth.shape
        names = [names[0] for names in self.table.names]
        self.drawn = Secrets(names, split, self.name, "things")
        self.said = (*(wordings[0] for wordings in self.table.questions), *self.table.guesses)
        self.understanding = Understanding(self.table)
        self.beliefs = Beliefs(self.table.truth, self.noise, self.vague)
        self.cost = Cost("question")
        self._asked = Outcome.of({SYSTEM: self.cost.charge(), USER: self.cost.charge()})
        self.facts = self._facts(whole_number("longest", longest, self.name))

    @classmethod
    def surroundings(cls, settings: Mapping[str, Any]) -> Hashable:
        """The state of the file that the setting `table` names."""
        table = settings.get("table", BUILT_IN[0])
        return None if table in BUILT_IN else fingerprint(locate(table, cls.name))

    def _facts(self, longest: int) -> Facts:
        asked = [*self.said, *(w for wordings in self.table.questions for w in wordings)]
        told = [*REPLIES, *map(self.knowledge, range(self.things))]
        most = {SYSTEM: max(longest, *map(len, asked)), USER: max(map(len, told))}
        words = {
            SYSTEM: max(len(text.split()) for text in asked),
            USER: max(len(text.split()) for text in told),
        }
        returns = (-float(self.turns), 0.0)
        heard = {SYSTEM: self.turns, USER: self.turns}
        return Facts(
            turn_limit=self.turns,
            longest=most,
            heard={SYSTEM: heard, USER: {**heard, USER: self.turns + 1}},
            returns={SYSTEM: returns, USER: returns},
            charset=CHARSET,
            hidden={SYSTEM: ("item",)},
            may_end=(USER,),
            words={SYSTEM: words, USER: words},
            components={SYSTEM: (self.cost.name,), USER: (self.cost.name,)},
            metrics=("information", "understood"),
        )

    def knowledge(self, item: int) -> str:
        """Brief of the answerer at the beginning."""
        return f"it is {self.table.names[item][0]}"

    def initial(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> TwentyQuestionsState:
        item = self.draw_item(rng, options)
        return TwentyQuestionsState(item, self.opening(item))

    def draw_item(self, rng: np.random.Generator, options: Mapping[str, Any] | None) -> int:
        """The row of the thing that `options` names, or of a random one."""
        name = self.check_options(options).get("item")
        if name is None:
            return self.drawn.draw(rng)
        found = self.row.get(normal(str(name)))
        if found is None:
            raise unknown("item", name, self.row, f"the table of {self.name}")
        if found not in self.drawn:
            raise ValueError(
                f"option 'item' of {self.name}: expected one of its {len(self.drawn)} things"
                f"{self.drawn}; got {name!r}. Choose another thing, or split=None."
            )
        return found

    def secrets(self) -> Sequence[Mapping[str, Any]]:
        """The things, cities or whatever the table is of; those of the split."""
        return [{"item": self.table.names[row][0]} for row in self.drawn]

    def opening(self, item: int) -> list[Utterance]:
        """Private utterances of the answerer at the beginning."""
        return [Utterance(USER, self.knowledge(item), private=True)]

    def speaker(self, state: TwentyQuestionsState) -> str:
        return USER if state.waiting else SYSTEM

    def transcript(self, state: TwentyQuestionsState, party: str) -> Sequence[Utterance]:
        return state.lines if party == SYSTEM else state.opening + state.lines

    def conditions(self, party: str) -> Sequence[str]:
        """Those on turns; for the questioner what it may be, and how true answers are."""
        if party == USER:
            judged = "Guesses are judged by the rules, whatever you say."
            return [turns_sentence(self, party), judged]
        things = [names[0] for names in self.table.names]
        wrong = f"{self.noise:.0%} of the answers are the opposite of what is true."
        return [
            f"You have at most {self.turns} questions, guesses included.",
            choice_sentence("What it thinks of", things, "things"),
            *([wrong] if self.noise else []),
            *length_sentence(self, party),
        ]

    def scenario(self, state: TwentyQuestionsState, party: str) -> str:
        return f"You think of {self.table.names[state.item][0]}." if party == USER else ""

    def situation(self, state: TwentyQuestionsState, party: str) -> Any:
        """Questions and answers, in whatever order, noisy answers as often as they came; for
        the answerer the thing, and what waits for its answer."""
        answered = sorted((c, a) for c, a in zip(state.codes, state.answers) if c != NOTHING)
        heard = answered if self.noise or self.vague else sorted(set(answered))
        if party == SYSTEM:
            return heard
        return heard, state.item, [state.codes[-1], state.negated] if state.waiting else None

    def speak(self, state: TwentyQuestionsState, text: str, rng: np.random.Generator) -> Outcome:
        state.lines.append(Utterance(self.speaker(state), text))
        return self._answer(state, text) if state.waiting else self._ask(state, text)

    def _ask(self, state: TwentyQuestionsState, text: str) -> Outcome:
        code, state.negated = self.understanding.read(text)
        state.codes.append(code)
        state.waiting = True
        right = self.guessed(state)
        if code >= self.questions:
            state.answers.append(YES if right else NO)
        return _OPEN if right else self._asked

    def guessed(self, state: TwentyQuestionsState) -> bool:
        """Return True if the last utterance of the questioner was the right guess."""
        return bool(state.codes) and state.codes[-1] == self.questions + state.item

    def _answer(self, state: TwentyQuestionsState, text: str) -> Outcome:
        answer = read_answer(text)
        if len(state.answers) < len(state.codes):  # the rules have judged a guess before
            turned = state.negated and answer != UNCLEAR
            state.answers.append(1 - answer if turned else answer)
        state.waiting, right = False, self.guessed(state)
        state.over = right or state.turns == self.turns
        return (_GUESSED if right else _LOST) if state.over else _OPEN

    def true_answer(self, state: TwentyQuestionsState) -> int:
        """NO, YES or UNCLEAR: what a truthful answerer says to the last utterance."""
        code = state.codes[-1]
        if code == NOTHING:
            return UNCLEAR
        if code >= self.questions:
            return YES if code - self.questions == state.item else NO
        answer = int(self.table.truth[state.item, code])
        return 1 - answer if state.negated and answer != UNCLEAR else answer

    def hypotheses(self, state: TwentyQuestionsState) -> int:
        """See `dialgym.tasks.ExactPosterior`."""
        return self.things

    def posterior(self, state: TwentyQuestionsState) -> np.ndarray:
        """(K,) float64: the probability of each thing after the answers so far."""
        weights = self.beliefs.start() if state.weights is None else state.weights
        fresh = slice(state.counted, len(state.answers))
        weights = self.beliefs.weigh_all(weights, state.codes[fresh], state.answers[fresh])
        state.weights, state.counted = weights, len(state.answers)
        return normalised(weights)

    def truth(self, state: TwentyQuestionsState) -> int:
        """The row of the hidden thing."""
        return state.item

    def value(self, state: TwentyQuestionsState) -> float:
        """See `dialgym.tasks.ExactValue`; by search, of small tables.

        Raises:
            ValueError: answers are noisy or vague, or the table is too large.
        """
        if self.noise or self.vague:
            raise ValueError(
                f"value of {self.name}: expected noise=0 and vague=0, whose best play is known; "
                f"got {self.noise} and {self.vague}."
            )
        if state.over:
            return 0.0
        left = np.flatnonzero(self.posterior(state))
        return self.search.value(left.tolist(), self.turns - state.turns)

    @cached_property
    def search(self) -> Search:
        """Of the best questions, with what it has found."""
        return Search(self.table.truth)

    def naming(self, state: TwentyQuestionsState) -> str:
        """The right guess."""
        return self.table.guesses[state.item]

    def suppose(self, state: TwentyQuestionsState, place: int) -> TwentyQuestionsState:
        """The same dialogue about another thing."""
        other = state.copy()
        other.item, other.opening = place, self.opening(place)
        return other

    def gains(self, state: TwentyQuestionsState) -> np.ndarray:
        """(A + K,) bits that each question and each guess would tell now, on average."""
        return self.beliefs.gains(self.posterior(state))

    def metrics(self, state: TwentyQuestionsState) -> Mapping[str, float]:
        """The share of the doubt that was removed, and of what was said that was understood."""
        left = float(entropy(self.posterior(state))) / float(np.log2(self.things))
        understood = sum(code != NOTHING for code in state.codes) / max(state.turns, 1)
        return {"information": float(np.clip(1.0 - left, 0.0, 1.0)), "understood": understood}

    def static_constraint(self, party: str) -> Constraint | None:
        if party == USER:
            return _REPLIES
        return self.lexicon if self.mask == "questions" else AnyText()

    def styled(self, utterance: Utterance) -> Sequence[tuple[str, str]]:
        return [(utterance.text, STYLES.get(utterance.text, ""))]

    def words(self) -> Sequence[str]:
        """Those of all wordings of questions and guesses, and of what the answerer says."""
        guesses = (f"is it {name}?" for names in self.table.names for name in names)
        questions = (wording for wordings in self.table.questions for wording in wordings)
        told = map(self.knowledge, range(self.things))
        texts = (*REPLIES, *questions, *guesses, *told)
        return tuple(dict.fromkeys(word for text in texts for word in text.split()))

    @cached_property
    def lexicon(self) -> WordTrie:
        """Each question in its first wording, and each guess."""
        return WordTrie(self.said)

    @cached_property
    def row(self) -> dict[str, int]:
        """The row of each name, with and without its article."""
        rows: dict[str, int] = {}
        for row, names in enumerate(self.table.names):
            for name in names:
                rows[normal(name)] = row
                article, _, bare = name.partition(" ")
                if article in ARTICLES:
                    rows.setdefault(normal(bare), row)
        return rows


def _rate(name: str, value: object, below: float) -> float:
    what = f"{name} of {TwentyQuestions.name}"
    rate = finite_number(what, value)
    if not 0.0 <= rate < below:
        raise ValueError(f"{what} must be a rate from 0 to below {below}; got {value!r}.")
    return rate


_REPLIES = WordTrie(REPLIES)
_OPEN = Outcome.of({SYSTEM: {}, USER: {}})
_GUESSED = Outcome.of({SYSTEM: {}, USER: {}}, terminated=True, success=True)
_LOST = Outcome.of({SYSTEM: {}, USER: {}}, terminated=True, success=False)
