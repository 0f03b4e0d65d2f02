"""Scripted speakers of Wordle: hosts for the user, policies for the system.

All of them know only what their side has seen. The set of policies is that of ILQL's
`src/wordle/policy.py`; "information" is the expected entropy gained, log N - E[log n_next].
"""

from collections.abc import Sequence

import numpy as np

from dialgym.errors import share
from dialgym.io.cache import PerTask
from dialgym.simulators import Speaker
from dialgym.tasks.wordle.batch import Games
from dialgym.tasks.wordle.patterns import PATTERNS
from dialgym.tasks.wordle.task import Wordle
from dialgym.tasks.wordle.types import WordleState
from dialgym.tasks.wordle.words import Words, load_words

Generator = np.random.Generator

OPENERS = (
    "arise", "atone", "cater", "crane", "crate", "dealt", "irate", "later", "least", "learn",
    "orate", "plate", "raise", "react", "roast", "saint", "scale", "share", "shore", "slant",
    "slate", "snare", "spare", "stale", "stare", "store", "trace", "trail",
)  # fmt: skip


class Host:
    """Chooses the word that was drawn at reset."""

    def reply(self, task: Wordle, state: WordleState, rng: Generator) -> str:
        return task.answers[state.secret]


class RandomWord:
    """Any legal guess, uniformly."""

    def reply(self, task: Wordle, state: WordleState, rng: Generator) -> str:
        return task.guesses[int(rng.integers(len(task.guesses)))]

    def reply_many(
        self, task: Wordle, states: Sequence[WordleState], rngs: Sequence[Generator]
    ) -> Sequence[str]:
        """See `dialgym.simulators.BatchSpeaker`."""
        count = len(task.guesses)
        return [task.guesses[int(rng.integers(count))] for rng in rngs]


class StartWords:
    """A random good opener that is still possible, else a random possible word.

    Args:
        start_words: the openers, a list or the path of a file; None for 28 good ones, ILQL's.
    """

    def __init__(self, start_words: Words | None = None) -> None:
        self.words = OPENERS if start_words is None else load_words(start_words, "start_words")

    def reply(self, task: Wordle, state: WordleState, rng: Generator) -> str:
        possible = task.candidates(state)
        openers = np.array([task.answer_index.get(word, -1) for word in self.words])
        if self.words is not OPENERS and (openers < 0).all():
            raise ValueError(
                f"start_words: expected answers of this Wordle; got {', '.join(self.words[:5])}, "
                "of which none is. Give words of its list."
            )
        openers = openers[np.isin(openers, possible)]
        return task.answers[int(rng.choice(openers if len(openers) else possible))]


class OptimalWordle:
    """The guess of most information about the secret; ties are broken at random.

    Args:
        guesses: ``"consistent"``: only words that may be the secret; ``"all"``: any legal guess
            (possible words are preferred among ties).
    """

    def __init__(self, guesses: str = "consistent") -> None:
        if guesses not in ("consistent", "all"):
            raise ValueError(
                f"OptimalWordle: guesses must be 'consistent' or 'all'; got {guesses!r}."
            )
        self.guesses = guesses
        self._best = PerTask()

    def reply(self, task: Wordle, state: WordleState, rng: Generator) -> str:
        best = self.best_rows(task, task.candidates(state))
        return task.guesses[int(best[rng.integers(len(best))])]

    def best_rows(self, task: Wordle, candidates: np.ndarray) -> np.ndarray:
        """Rows of the table of the best guesses, remembered for each set of candidates."""
        known: dict[bytes, np.ndarray] = self._best.setdefault(task, {})
        key = candidates.tobytes()
        if key not in known:
            known[key] = self._search(task, candidates)
        return known[key]

    def _search(self, task: Wordle, candidates: np.ndarray) -> np.ndarray:
        possible = task.answer_rows[candidates]
        if self.guesses == "consistent" or len(candidates) <= 2:
            return possible[_ties(information(task.table, possible, candidates))]
        scores = information(task.table, np.arange(len(task.guesses)), candidates)
        best = _ties(scores)
        preferred = np.intersect1d(best, possible)
        return preferred if len(preferred) else best


class Expert:
    """Opens with a word of `StartWords`, then plays `OptimalWordle`.

    Args:
        start_words: see `StartWords`.
    """

    def __init__(self, start_words: Words | None = None) -> None:
        self.opening, self.rest = StartWords(start_words), OptimalWordle()

    def reply(self, task: Wordle, state: WordleState, rng: Generator) -> str:
        return (self.rest if state.guesses else self.opening).reply(task, state, rng)


def information(table: np.ndarray, rows: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Expected information (len(rows),) in nats of each guess about which candidate it is."""
    n = len(candidates)
    terms = np.arange(n + 1) * np.log(np.maximum(np.arange(n + 1), 1))
    scores = np.empty(len(rows))
    chunk = max(1, 2**19 // n)
    whole = n == table.shape[1]
    for start in range(0, len(rows), chunk):
        part = rows[start : start + chunk]
        seen = table[part] if whole else table[part[:, None], candidates]
        cells = seen + np.arange(len(part), dtype=np.int32)[:, None] * np.int32(PATTERNS)
        counts = np.bincount(cells.ravel(), minlength=len(part) * PATTERNS)
        scores[start : start + chunk] = terms[counts].reshape(len(part), PATTERNS).sum(1)
    return np.log(n) - scores / n


def _ties(scores: np.ndarray) -> np.ndarray:
    return np.flatnonzero(scores >= scores.max() - 1e-9)


class Repeat:
    """Opens with a word of `start` (random without it), then repeats one of its first guesses.

    Args:
        first_n: how many of the first guesses may be repeated.
        start: who chooses the first guess; or words, of which `StartWords` does.
    """

    def __init__(self, first_n: int = 2, start: Speaker | Words | None = None) -> None:
        chosen = RandomWord() if start is None else start
        self.first_n = first_n
        self.start = chosen if isinstance(chosen, Speaker) else StartWords(chosen)

    def reply(self, task: Wordle, state: WordleState, rng: Generator) -> str:
        if not state.guesses:
            return self.start.reply(task, state, rng)
        return str(rng.choice(state.guesses[: self.first_n]))


class WordMixture:
    """With probability `smart` a word that may be the secret, else any legal guess."""

    def __init__(self, smart: float = 0.5) -> None:
        self.smart = share("smart of random-mixture", smart)

    def reply(self, task: Wordle, state: WordleState, rng: Generator) -> str:
        if rng.random() >= self.smart:
            return task.guesses[int(rng.integers(len(task.guesses)))]
        candidates = task.candidates(state)
        return task.answers[int(candidates[rng.integers(len(candidates))])]

    def reply_many(
        self, task: Wordle, states: Sequence[WordleState], rngs: Sequence[Generator]
    ) -> Sequence[str]:
        """See `dialgym.simulators.BatchSpeaker`."""
        count = len(task.guesses)
        smart = np.array([rng.random() < self.smart for rng in rngs], bool)
        said = np.zeros(len(states), np.int64)
        said[~smart] = [rng.integers(count) for rng, s in zip(rngs, smart.tolist()) if not s]
        possible = _possible(task, states, np.flatnonzero(smart))
        sizes = np.count_nonzero(possible, 1)
        rngs_smart = [rng for rng, s in zip(rngs, smart.tolist()) if s]
        drawn = [rng.integers(size) for rng, size in zip(rngs_smart, sizes.tolist())]
        first = np.cumsum(sizes) - sizes
        answers = np.nonzero(possible)[1][first + np.array(drawn, np.int64)]
        said[smart] = task.answer_rows[answers]
        return [task.guesses[guess] for guess in said.tolist()]


def _possible(task: Wordle, states: Sequence[WordleState], places: np.ndarray) -> np.ndarray:
    """(k, A) bool: the answers that agree with all colours of the games at `places` (k,)."""
    if isinstance(states, Games):
        return states.possible(places)
    possible = np.zeros((len(places), len(task.answers)), bool)
    for row, place in zip(possible, places.tolist()):
        row[task.candidates(states[place])] = True
    return possible


class Wrong:
    """A random answer that cannot be the secret; any answer while all are possible."""

    def reply(self, task: Wordle, state: WordleState, rng: Generator) -> str:
        everything = np.arange(len(task.answers))
        wrong = np.setdiff1d(everything, task.candidates(state), assume_unique=True)
        pool = wrong if len(wrong) else everything
        return task.answers[int(rng.choice(pool))]


class Mixture:
    """For each guess, one of `parts` by its weight (equal ones by default)."""

    def __init__(
        self, parts: Sequence[Speaker] | None = None, weights: Sequence[float] | None = None
    ) -> None:
        self.parts = parts or (OptimalWordle(), RandomWord())
        shares = np.ones(len(self.parts)) if weights is None else np.asarray(weights, float)
        if len(shares) != len(self.parts) or (shares < 0).any() or not shares.sum():
            raise ValueError(
                f"Mixture: expected {len(self.parts)} weights >= 0, one a part, not all 0; "
                f"got {weights!r}."
            )
        self.shares = shares / shares.sum()

    def reply(self, task: Wordle, state: WordleState, rng: Generator) -> str:
        part = self.parts[int(rng.choice(len(self.parts), p=self.shares))]
        return part.reply(task, state, rng)


class MonteCarlo:
    """The guess whose games, played out by `rollout`, have the best mean return.

    `guesses` possible words are tried, each in the same `samples` games, whose secrets are drawn
    from the words that agree with the colours so far (the true one is not looked at).
    """

    def __init__(
        self, samples: int = 10, guesses: int = 10, rollout: Speaker | None = None
    ) -> None:
        self.samples, self.guesses = samples, guesses
        self.rollout = rollout or WordMixture(1.0)

    def reply(self, task: Wordle, state: WordleState, rng: Generator) -> str:
        candidates = task.candidates(state)
        secrets = rng.choice(candidates, self.samples)
        tried = rng.permutation(candidates)[: self.guesses]
        returns = [
            sum(self._play(task, state, task.answers[guess], int(s), rng) for s in secrets)
            for guess in tried
        ]
        return task.answers[int(tried[int(np.argmax(returns))])]

    def _play(
        self, task: Wordle, state: WordleState, guess: str, secret: int, rng: Generator
    ) -> float:
        game, gained = state.copy(), 0.0
        game.secret = secret
        while True:
            outcome = task.speak(game, guess, rng)
            gained += outcome.rewards["system"]
            if game.over:
                return gained
            guess = self.rollout.reply(task, game, rng)


def optimal_all() -> OptimalWordle:
    """The best guess of all that are legal."""
    return OptimalWordle("all")
