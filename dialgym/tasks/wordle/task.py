"""The rules of Wordle."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dialgym.errors import one_of, whole_number
from dialgym.language import AnyText, Constraint, Letters, Utterance, WordTrie
from dialgym.rewards import Cost
from dialgym.simulators import Speaker
from dialgym.tasks.base import SYSTEM, USER, Facts, Outcome, Task
from dialgym.tasks.batch import DialogueBatch
from dialgym.tasks.splits import Secrets
from dialgym.tasks.wordle import patterns
from dialgym.tasks.wordle.conditions import conditions_of
from dialgym.tasks.wordle.patterns import INVALID, LENGTH, REPLIES, SOLVED
from dialgym.tasks.wordle.search import WordSearch
from dialgym.tasks.wordle.types import WordleState
from dialgym.tasks.wordle.words import Words, answers_of, guesses_of, is_word

STYLES = {"g": "bold black on green", "y": "bold black on yellow", "b": "white on bright_black"}
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
ROOM = "dialgym.tasks.wordle"
POLICIES, GENERATORS = f"{ROOM}.policies", f"{ROOM}.generators"


class Wordle(Task):
    """Guess a hidden five-letter word; the host answers each guess with colours.

    The host (`user`) first chooses the secret, in private. Then the `system` guesses, and the
    rules answer in the host's name: ``b y b b g`` is black, yellow, black, black, green, or
    ``invalid`` where the guess is not a word.

    Rewards: -1 for each guess that is not the secret, invalid ones included; 0 for the secret.
    The host's reward is the opposite. The game is over (terminated) when the word is found or
    no guess is left.

    Args:
        words: keep only this many answers, the most common first; None for all.
        answers: the secret words: a file, a sequence, or None for the built-in list.
        guesses: what may be guessed beside the answers: ``"allowed"`` (built-in list),
            ``"answers"`` (nothing else), ``"any"`` (any five letters), a file or a sequence.
        feedback: ``"standard"``, or ``"ilql"``: repeated letters are not counted, which is not
            Wordle's rule but that of ILQL and LMRL-Gym (for comparison with their figures).
        secret: ``"fixed"``, or ``"resample"``: redrawn before each guess from the words that
            agree with all colours so far (ILQL's way to make the game a Markov process).
        host: ``"honest"``; ``"opening"``, who also makes the first guess, a wrong one that costs
            nothing; or ``"adversarial"``: never settles on a word, and gives the colours that keep
            the most words possible.
        hard_mode: a guess must use all that the colours have shown, else it is invalid.
        invalid: an invalid guess costs 1 and a turn (``"turn"``), or 1 and no turn
            (``"reject"``; the dialogue is truncated at the `turns`-th such guess).
        constraint: what action masks allow: ``"letters"`` (any five), ``"words"`` (the guess
            list, in hard mode what is left of it), or None.
        turns: guesses in a game.
        split: the answers that may be the secret: ``"train"``, ``"validation"`` or ``"test"``, by
            their letters (`dialgym.tasks.splits`); None for all. All may be guessed, and the
            scripted policies and `posterior` know no split.

    Options of reset: ``word``, the secret, of the split if there is one; not with an adversarial
    host, who has none.

    Versions:
        v0: the first, of dialgym 0.1.

    Raises:
        ValueError: a setting is not one of the above, or a word list is not usable.
    """

    name = "Wordle"
    how_to_play = {  # noqa: RUF012
        "system": "Guess the secret word of five letters. Each letter of a guess is answered by g "
        "(in its place), y (elsewhere in the word) or b (not in it, or not so often). The fewer "
        "guesses, the better.",
        "user": "Choose the secret word, in private; the rules then answer guesses in your name.",
    }
    verbs = {"system": "guess(word)", "user": "choose(word)"}  # noqa: RUF012
    options = ("word",)
    speakers = {  # noqa: RUF012
        USER: {"host": f"{POLICIES}:Host"},
        SYSTEM: {
            "random": f"{POLICIES}:RandomWord",
            "start-words": f"{POLICIES}:StartWords",
            "optimal": f"{POLICIES}:OptimalWordle",
            "greedy": f"{POLICIES}:OptimalWordle",  # as the same is called in other tasks
            "optimal-all": f"{POLICIES}:optimal_all",
            "expert": f"{POLICIES}:Expert",
            "repeat": f"{POLICIES}:Repeat",
            "random-mixture": f"{POLICIES}:WordMixture",
            "wrong": f"{POLICIES}:Wrong",
            "mixture": f"{POLICIES}:Mixture",
            "monte-carlo": f"{POLICIES}:MonteCarlo",
        },
    }
    generators = {  # noqa: RUF012
        "branching": f"{GENERATORS}:branching",
        "adversarial": f"{GENERATORS}:adversarial",
        "halves": f"{GENERATORS}:halves",
        "human": f"{GENERATORS}:HumanGames",
        "pickle": f"{GENERATORS}:PickledGames",
    }
    batches = {SYSTEM: (f"{POLICIES}:Host", f"{ROOM}.batch:WordleBatch")}  # noqa: RUF012
    hidden_fields = {SYSTEM: ("secret", "opening")}  # noqa: RUF012

    def __init__(
        self,
        words: int | None = None,
        answers: Words | None = None,
        guesses: Words = "allowed",
        feedback: str = "standard",
        secret: str = "fixed",
        host: str = "honest",
        hard_mode: bool = False,
        invalid: str = "turn",
        constraint: str | None = "letters",
        turns: int = 6,
        split: str | None = None,
    ) -> None:
        one_of("feedback", feedback, patterns.RULES, self.name)
        one_of("secret", secret, ("fixed", "resample"), self.name)
        one_of("host", host, ("honest", "opening", "adversarial"), self.name)
        one_of("invalid", invalid, ("turn", "reject"), self.name)
        one_of("constraint", constraint, ("letters", "words", None), self.name)
        whole_number("turns", turns, self.name)
        self.answers = answers_of(answers, words)
        self.drawn = Secrets(self.answers, split, self.name, "answers")
        self.any_guess = isinstance(guesses, str) and guesses == "any"
        self.guesses = guesses_of(guesses, self.answers)
        if self.any_guess and constraint == "words":
            raise ValueError(
                "Wordle: guesses='any' has no list that constraint='words' could follow. "
                "Use constraint='letters', or give a list of guesses."
            )
        if split and (secret == "resample" or host == "adversarial"):
            raise ValueError(
                f"split of Wordle: expected secret='fixed' and a host who is not 'adversarial', as "
                f"those take any answer; got {secret!r} and {host!r}. Set them, or split=None."
            )
        if host == "opening" and min(turns, len(self.answers)) < 2:
            raise ValueError(
                "host='opening' of Wordle: expected two answers and two turns at least"
            )
        self.feedback, self.secret_mode, self.host = feedback, secret, host
        self.hard_mode, self.invalid, self.mask, self.turns = hard_mode, invalid, constraint, turns
        self.cost = Cost("wrong guess")
        charged = {SYSTEM: self.cost.charge(), USER: {self.cost.name: self.cost.amount}}
        self._wrong = Outcome.of(charged)
        self._lost = Outcome.of(charged, terminated=True, success=False)
        self._rejected = Outcome.of(charged, truncated=True, success=False)
        self.facts = self._facts()

    def _facts(self) -> Facts:
        rejections = self.turns if self.invalid == "reject" else 0
        limit = self.turns + max(rejections - 1, 0)
        return Facts(
            turn_limit=limit,
            longest={SYSTEM: LENGTH, USER: 2 * LENGTH - 1},
            heard={SYSTEM: {SYSTEM: limit, USER: limit}, USER: {SYSTEM: limit, USER: limit + 1}},
            returns={SYSTEM: (-float(limit), 0.0), USER: (0.0, float(limit))},
            charset=ALPHABET + " ",
            hidden={SYSTEM: ("secret",)},
            components={SYSTEM: (self.cost.name,), USER: (self.cost.name,)},
        )

    def initial(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> WordleState:
        return WordleState(self.draw_secret(rng, options), settled=self.host == "adversarial")

    def draw_secret(self, rng: np.random.Generator, options: Mapping[str, Any] | None) -> int:
        """The index of the answer that `options` names, or of a random one."""
        word = self.check_options(options).get("word")
        if word is None:
            return self.drawn.draw(rng)
        self._require_secret()
        if not isinstance(word, str) or word not in self.drawn_index:
            raise ValueError(
                f"option 'word' of {self.name}: expected one of its {len(self.drawn)} answers"
                f"{self.drawn}; got {word!r}. Choose another word, or give a list with it as "
                "answers=."
            )
        return self.drawn_index[word]

    def secrets(self) -> Sequence[Mapping[str, Any]]:
        """The answers of the split; none with a host that changes the secret on the way."""
        settles = self.host != "adversarial" and self.secret_mode == "fixed"
        return [{"word": word} for word in self.drawn_index] if settles else []

    def speaker(self, state: WordleState) -> str:
        return SYSTEM if state.settled else USER

    def transcript(self, state: WordleState, party: str) -> Sequence[Utterance]:
        return state.lines if party == SYSTEM else state.opening + state.lines

    def conditions(self, party: str) -> Sequence[str]:
        return conditions_of(self, party)

    def notes(self, state: WordleState, party: str) -> int:
        """None: the host has said its private word itself."""
        return 0

    def situation(self, state: WordleState, party: str) -> Any:
        """The guesses with their colours, in whatever order; for the host its choice too."""
        return set(zip(state.guesses, state.patterns)), state.opening if party == USER else None

    def speak(self, state: WordleState, text: str, rng: np.random.Generator) -> Outcome:
        if not state.settled:
            return self._choose(state, text, rng)
        if self.secret_mode == "resample" and state.turns:
            state.secret = int(rng.choice(self.candidates(state)))
        pattern = self._answer(state, text)
        self._record(state, text, pattern)
        return self._judge(state, pattern)

    def _choose(self, state: WordleState, word: str, rng: np.random.Generator) -> Outcome:
        """The host's first utterance; if it cannot be the secret, the word drawn before stands."""
        state.secret = self.drawn_index.get(word, state.secret)
        state.settled = True
        state.opening.append(Utterance(USER, word, private=True))
        if self.host == "opening":
            place = int(rng.integers(len(self.answers) - 1))
            guess = self.answers[place + (place >= state.secret)]
            self._record(state, guess, self._answer(state, guess))
        return _UNSETTLED

    def _answer(self, state: WordleState, guess: str) -> int:
        row = self._row(guess)
        if row is None:
            return INVALID
        if self.hard_mode and not self._keeps_hints(state, patterns.letters([guess])).all():
            return INVALID
        if self.host == "adversarial":
            counts = np.bincount(row[self.candidates(state)], minlength=patterns.PATTERNS)
            return int(counts.argmax())
        return int(row[state.secret])

    def _keeps_hints(self, state: WordleState, words: np.ndarray) -> np.ndarray:
        return state.keeps_hints(words, counted=self.feedback != "ilql")

    def _row(self, guess: str) -> np.ndarray | None:
        """The patterns (A,) of a guess against all answers, None if it is no legal guess."""
        index = self.guess_index.get(guess)
        if index is not None:
            return self.table[index]
        if self.any_guess and is_word(guess):
            return patterns.colour(patterns.letters([guess]), self.answer_letters, self.feedback)
        return None

    def _record(self, state: WordleState, guess: str, pattern: int) -> None:
        state.lines += (Utterance(SYSTEM, guess), _ANSWERS[pattern])
        state.guesses.append(guess)
        state.patterns.append(pattern)
        if pattern == INVALID and self.invalid == "reject":
            state.rejected += 1
        else:
            state.turns += 1

    def _judge(self, state: WordleState, pattern: int) -> Outcome:
        if pattern == SOLVED:
            state.over = True
            return _SOLVED
        state.over = self.turns in (state.turns, state.rejected)
        if not state.over:
            return self._wrong
        return self._lost if state.turns == self.turns else self._rejected

    def candidates(self, state: WordleState) -> np.ndarray:
        """Indices (n,) of the answers that agree with all colours so far; n >= 1."""
        left = np.arange(len(self.answers)) if state.consistent is None else state.consistent
        new = slice(state.filtered, None)
        for guess, pattern in zip(state.guesses[new], state.patterns[new]):
            row = self._row(guess)
            if pattern != INVALID and row is not None:
                left = left[row[left] == pattern]
        state.consistent, state.filtered = left, len(state.guesses)
        return left

    def hypotheses(self, state: WordleState) -> int:
        """See `dialgym.tasks.ExactPosterior`."""
        return len(self.answers)

    def posterior(self, state: WordleState) -> np.ndarray:
        """(A,) float64: every answer that agrees with all colours so far is as likely."""
        left = self.candidates(state)
        belief = np.zeros(len(self.answers))
        belief[left] = 1 / len(left)
        return belief

    def truth(self, state: WordleState) -> int:
        """The index of the secret.

        Raises:
            ValueError: the host is adversarial, and has none.
        """
        self._require_secret()
        return state.secret

    def _require_secret(self) -> None:
        if self.host == "adversarial":
            raise ValueError(
                f"{self.name}: a host that is adversarial never settles on a secret. "
                "Use host='honest'."
            )

    def value(self, state: WordleState) -> float:
        """See `dialgym.tasks.ExactValue`; by search, of few words."""
        left = 0 if state.over else self.turns - state.turns
        return self.search.value(self.candidates(state), left) if left else 0.0

    def naming(self, state: WordleState) -> str:
        """The secret; raises as `truth` does."""
        return self.answers[self.truth(state)]

    def suppose(self, state: WordleState, place: int) -> WordleState:
        """The same game with another secret."""
        other = state.copy()
        other.secret = place
        other.opening = [Utterance(USER, self.answers[place], private=True)] * len(state.opening)
        return other

    def static_constraint(self, party: str) -> Constraint | None:
        if party == USER:
            return WordTrie(self.drawn_index)
        if self.mask == "words":
            return None if self.hard_mode else self.guess_lexicon
        return Letters(ALPHABET, LENGTH) if self.mask == "letters" else AnyText()

    def union_constraint(self, party: str) -> Constraint:
        return self.static_constraint(party) or self.guess_lexicon

    def constraint(self, state: WordleState, party: str) -> Constraint:
        if party == SYSTEM and self.mask == "words" and self.hard_mode and state.guesses:
            keeps = self._keeps_hints(state, self.guess_letters)
            return WordTrie(self.guesses[i] for i in np.flatnonzero(keeps))
        return self.union_constraint(party)

    def batch(self, size: int, learner: str, simulator: Speaker) -> DialogueBatch | None:
        plain = self.secret_mode == "fixed" and self.host == "honest" and not self.hard_mode
        return super().batch(size, learner, simulator) if plain else None

    def picture(self, state: WordleState) -> np.ndarray:
        return patterns.board(state.guesses, state.patterns, self.turns)

    def styled(self, utterance: Utterance) -> Sequence[tuple[str, str]]:
        if utterance.speaker == SYSTEM or utterance.text not in REPLIES:
            return [(utterance.text, "")]
        return [(letter, STYLES.get(letter, "")) for letter in utterance.text]

    def words(self) -> Sequence[str]:
        return (*self.guesses, "b", "y", "g", "invalid")

    @cached_property
    def table(self) -> np.ndarray:
        """Patterns (G, A) uint8 of every guess against every answer."""
        return patterns.pattern_table(self.guesses, self.answers, self.feedback)

    @cached_property
    def search(self) -> WordSearch:
        """Of the best guesses, with what it has found; raises ValueError under other rules."""
        known = (self.host, self.secret_mode, self.hard_mode, self.invalid)
        return WordSearch(self.table, known)

    @cached_property
    def answer_letters(self) -> np.ndarray:
        """(A, 5) uint8."""
        return patterns.letters(self.answers)

    @cached_property
    def guess_letters(self) -> np.ndarray:
        """(G, 5) uint8."""
        return patterns.letters(self.guesses)

    @cached_property
    def guess_texts(self) -> np.ndarray:
        """(G,) `<U5`."""
        return np.array(self.guesses)

    @cached_property
    def answer_index(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.answers)}

    @cached_property
    def drawn_index(self) -> dict[str, int]:
        return {self.answers[i]: i for i in self.drawn}

    @cached_property
    def guess_index(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.guesses)}

    @cached_property
    def answer_rows(self) -> np.ndarray:
        """(A,) the row of each answer in the table."""
        return np.array([self.guess_index[word] for word in self.answers])

    @cached_property
    def guess_lexicon(self) -> WordTrie:
        return WordTrie(self.guesses)

    def __getstate__(self) -> dict[str, Any]:
        """Without the table, which the other process maps from the cache."""
        return {key: value for key, value in self.__dict__.items() if key != "table"}


_ANSWERS = [Utterance(USER, text) for text in (*REPLIES, "invalid")]
"""Texts of the host, by pattern; INVALID = -1 is the last."""
_UNSETTLED = Outcome.of({SYSTEM: {}, USER: {}})
_SOLVED = Outcome.of({SYSTEM: {}, USER: {}}, terminated=True, success=True)
