"""Metrics of a set of replies, with bootstrap intervals.

Most measures are means over replies. Corpus BLEU is a function of sums over replies. Distinct-n is
a property of the whole set, and falls with its size: compare sets of one size only.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.errors import unknown
from dialgym.rewards.base import Reply
from dialgym.rewards.compose import Composite, Examples, make_reward, make_rewards
from dialgym.rewards.overlap import references
from dialgym.rewards.words import ngrams, words

NAMES = (
    "rouge1", "rougeL", "rougeLsum", "meteor", "sacrebleu",
    "distinct1", "distinct2", "intent", "words",
)  # fmt: skip
"""ROUGE-1, -L, -Lsum, METEOR, corpus BLEU, distinct-1 and -2 of the whole set, share of replies of
the wanted act, mean number of words."""
DISTINCT = {"distinct1": 1, "distinct2": 2}
BLEU = "sacrebleu"
WORDS = "words"
CELLS = 2**22  # counts of resampled replies held in memory at once


class ReplyMetrics:
    """Measures of replies, their models loaded once.

    Args:
        names: of `NAMES`, or any reward of the registry, of which the mean is reported.
        examples: labelled replies that `intent` learns from.
        settings: of rewards by their name, such as ``{"intent": {"model": "PATH"}}``.

    Raises:
        ValueError: an unknown name, or `intent` without examples or a model.
    """

    def __init__(
        self,
        names: Sequence[str] = NAMES,
        examples: Examples | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.names = tuple(names)
        own = settings or {}
        for name in own:
            if name not in self.names:
                raise unknown("measure", name, self.names, "the settings of Metrics")
        hit = {"intent": {"measure": "hit"}}
        means = [name for name in names if name not in (*DISTINCT, BLEU, WORDS)]
        spec = {name: {**hit.get(name, {}), **own.get(name, {})} for name in means}
        self._rewards = make_rewards(spec, examples, guarded=False) if spec else Composite([])
        self._bleu: Any = make_reward(BLEU, own.get(BLEU))
        counting = {**own.get(BLEU, {}), "smooth": "none"}  # add-k changes what it counts
        self._counter: Any = make_reward(BLEU, counting)

    def values(self, replies: Sequence[Reply]) -> dict[str, float]:
        """Each measure of these replies.

        Raises:
            ValueError: there are no replies, or one has no references where they are needed.
        """
        sums = {name: table.sum(0) for name, table in self._tables(replies).items()}
        return {
            name: distinct(replies, DISTINCT[name])
            if name in DISTINCT
            else self._value(name, sums[name], len(replies))
            for name in self.names
        }

    def per_reply(self, replies: Sequence[Reply]) -> dict[str, np.ndarray]:
        """Values (k,) float64 of the measures that are means over replies."""
        tables = self._tables(replies)
        return {name: table[:, 0] for name, table in tables.items() if name != BLEU}

    def intervals(
        self,
        replies: Sequence[Reply],
        rng: np.random.Generator,
        level: float = 0.95,
        resamples: int = 2000,
    ) -> dict[str, tuple[float, float]]:
        """Percentile bootstrap over replies, Efron (1979), of all measures but distinct-n.

        Each resample is the same for all measures. Distinct-n has none: a resample has the same
        reply several times over, and so always fewer distinct n-grams.
        """
        tables, tails = self._tables(replies), [50 * (1 - level), 50 * (1 + level)]
        drawn: dict[str, list[float]] = {name: [] for name in tables}
        for counts in _resampled(len(replies), resamples, rng):
            for name, table in tables.items():
                drawn[name] += [self._value(name, row, len(replies)) for row in counts @ table]
        bounds = {name: np.percentile(values, tails) for name, values in drawn.items()}
        return {name: (float(low), float(high)) for name, (low, high) in bounds.items()}

    def _tables(self, replies: Sequence[Reply]) -> dict[str, np.ndarray]:
        """Terms summed over replies for each measure, (k, S) float64."""
        if not replies:
            raise ValueError("metrics need one reply or more; got none.")
        tables = self._rewards.score(replies)
        if WORDS in self.names:
            tables[WORDS] = np.array([len(words(reply.text)) for reply in replies], np.float64)
        columns = {name: column[:, None] for name, column in tables.items()}
        if BLEU in self.names:
            columns[BLEU] = np.array([self._counts(reply) for reply in replies], np.float64)
        return columns

    def _counts(self, reply: Reply) -> list[int]:
        """BLEU's counts of a reply: its length, that of its reference, matches, n-grams."""
        counted = self._counter.bleu.sentence_score(reply.text, list(references(reply, BLEU)))
        return [counted.sys_len, counted.ref_len, *counted.counts, *counted.totals]

    def _value(self, name: str, sums: np.ndarray, k: int) -> float:
        if name != BLEU:
            return float(sums[0] / k)
        counts = sums.round().astype(int).tolist()
        order = self._bleu.order
        matches, totals = counts[2 : 2 + order], counts[2 + order :]
        options = {"smooth_method": self._bleu.smooth, "max_ngram_order": order}
        bleu = self._bleu.bleu.compute_bleu(matches, totals, *counts[:2], **options)
        return float(bleu.score) / 100


def metrics_of(
    replies: Sequence[Reply], names: Sequence[str] = NAMES, examples: Examples | None = None
) -> dict[str, float]:
    """Each measure of these replies, once: see `ReplyMetrics`."""
    return ReplyMetrics(names, examples).values(replies)


def distinct(replies: Sequence[Reply], n: int) -> float:
    """Distinct n-grams of words in all replies over all n-grams, Li et al. (2016)."""
    grams = [gram for reply in replies for gram in ngrams(words(reply.text), n)]
    return len(set(grams)) / max(len(grams), 1)


def _resampled(k: int, resamples: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Counts by which each of k replies is drawn, in parts of (B, k) int64."""
    chunk = max(1, CELLS // k)
    for start in range(0, resamples, chunk):
        yield rng.multinomial(k, np.full(k, 1 / k), min(chunk, resamples - start))
