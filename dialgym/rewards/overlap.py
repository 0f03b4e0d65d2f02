"""Overlap with reference replies as a reward: METEOR, ROUGE, sentence-level BLEU, F1 of words.

Each but the last is the function of its reference library (nltk, rouge-score, sacrebleu), called so
that stems and tokens are found once. Of several references the best counts; BLEU has its own rule
for several.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from dialgym.errors import finite_number, one_of, share, whole_number
from dialgym.optional import require
from dialgym.rewards.base import Reply, Reward
from dialgym.rewards.words import KEPT, Treebank, sentences, words

EXTRA = "rewards"
MEASURES = ("fmeasure", "precision", "recall")
BLEU_TOKENIZERS = ("13a", "intl", "char", "zh", "none")
Tokenize = Callable[[str], list[str]]


class Overlap(Reward):
    """Compares a reply with its references."""

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) from 0 to 1.

        Raises:
            ValueError: a reply has no references.
        """
        return np.array([self.compare(r.text, references(r, self.name)) for r in replies], float)

    @abstractmethod
    def compare(self, text: str, references: Sequence[str]) -> float:
        """The score of one text beside one reference or more."""


def references(reply: Reply, name: str) -> Sequence[str]:
    """The references of a reply.

    Raises:
        ValueError: there are none, or a bare text, which would be read letter by letter.
    """
    if not reply.references or isinstance(reply.references, str):
        found = f"the text {reply.references!r:.40} alone" if reply.references else "none"
        raise ValueError(
            f"reward {name!r} compares a reply with references, and {reply.text!r} has {found}. "
            "Give it `references`, a tuple of texts, or use a reward that needs none."
        )
    return reply.references


@dataclass(frozen=True, kw_only=True)
class WordF1(Overlap):
    """F1 of the words, however often each occurs and in any order; needs no other package.

    With m words in common, each as often as both have it, precision m / |text| and recall
    m / |reference|; F1 = 2 m / (|text| + |reference|).
    """

    name: ClassVar[str] = "f1"

    def compare(self, text: str, references: Sequence[str]) -> float:
        """The best score over the references; 0 where there are no words."""
        said = Counter(words(text))
        return max(_f1(said, Counter(words(reference))) for reference in references)


def _f1(said: Counter[str], wanted: Counter[str]) -> float:
    both = said.total() + wanted.total()
    return 2 * (said & wanted).total() / both if both else 0.0


@dataclass(frozen=True, kw_only=True)
class Meteor(Overlap):
    """METEOR of Lavie and Agarwal (2007), as in nltk: words matched as they are, then by stem.

    Precision P and recall R of the matched words; F = P R / (alpha P + (1 - alpha) R); with the
    matches in c chunks of m words, the score is F (1 - gamma (c / m)^beta).

    Attributes:
        wordnet: match synonyms too, by the WordNet among nltk's data; nothing is downloaded. As in
            nltk, it is asked for stems, and so knows `auto` for `car` but no `automobile`.
        tokenizer: ``treebank`` (nltk's words and marks, sentence by sentence), ``wordpunct``
            (letters and marks apart) or ``split`` (at white space).
        alpha: weight of precision against recall.
        beta: how the penalty grows with fragmentation.
        gamma: the highest penalty.
    """

    name: ClassVar[str] = "meteor"
    wordnet: bool = False
    tokenizer: str = "treebank"
    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5

    def __post_init__(self) -> None:
        one_of("tokenizer", self.tokenizer, ("treebank", "wordpunct", "split"), "reward 'meteor'")
        share("alpha of reward 'meteor'", self.alpha)
        share("gamma of reward 'meteor'", self.gamma)
        if finite_number("beta of reward 'meteor'", self.beta) < 0:
            raise ValueError(f"beta of reward 'meteor' must be 0 or more; got {self.beta!r}.")

    def compare(self, text: str, references: Sequence[str]) -> float:
        """The best score over the references."""
        score, tokens = self._scorer, self._tokens
        return float(score([tokens(reference) for reference in references], tokens(text)))

    @cached_property
    def _tokens(self) -> Tokenize:
        return lru_cache(KEPT)(_tokenizer(self.tokenizer))

    @cached_property
    def _scorer(self) -> Callable[..., float]:
        nltk = require("nltk.translate.meteor_score", EXTRA, "reward 'meteor'")
        weights = {"alpha": self.alpha, "beta": self.beta, "gamma": self.gamma}
        helpers = {"stemmer": _stemmer(), "wordnet": _wordnet(self.wordnet)}
        return lambda refs, text: nltk.meteor_score(refs, text, **helpers, **weights)


def _tokenizer(name: str) -> Tokenize:
    if name == "split":
        return str.split
    if name == "treebank":
        return Treebank()
    tokenize: Tokenize = (
        require("nltk.tokenize", EXTRA, "reward 'meteor'").WordPunctTokenizer().tokenize
    )
    return tokenize


def _stemmer() -> Any:
    """nltk's Porter stemmer, which remembers."""
    porter = require("nltk.stem.porter", EXTRA, "stems of words").PorterStemmer()
    return SimpleNamespace(stem=lru_cache(KEPT)(porter.stem))


def _wordnet(wanted: bool) -> Any:
    """Stand-in that nltk asks for the `synsets` of a word; it knows none unless `wanted`."""
    if not wanted:
        return SimpleNamespace(synsets=lambda word: ())
    wordnet = require("nltk.corpus", EXTRA, "reward 'meteor'").wordnet
    try:
        wordnet.ensure_loaded()
    except (LookupError, OSError) as error:
        raise ValueError(
            "reward 'meteor' with wordnet=True found no whole WordNet among nltk's data. Get it "
            "by `python -m nltk.downloader wordnet`, point NLTK_DATA to it, or set wordnet=False."
        ) from error
    return SimpleNamespace(synsets=lru_cache(KEPT)(wordnet.synsets))


@dataclass(frozen=True, kw_only=True)
class Rouge(Overlap):
    """ROUGE of Lin (2004), as in rouge-score.

    Attributes:
        kind: ``rouge1`` to ``rouge9`` (n-grams), ``rougeL`` (longest common subsequence), or
            ``rougeLsum`` (its union over sentences).
        measure: ``fmeasure``, ``precision`` or ``recall``; the reference of best F-measure counts.
        stemmer: compare the stems of words of more than three letters.
        sentences: of ``rougeLsum``, ``lines`` as in rouge-score, or ``marks``: a sentence ends at
            `.`, `!` or `?` before a space too.
    """

    name: ClassVar[str] = "rouge"
    kind: str = "rougeL"
    measure: str = "fmeasure"
    stemmer: bool = False
    sentences: str = "lines"

    def __post_init__(self) -> None:
        kinds = [f"rouge{n}" for n in range(1, 10)]
        one_of("kind", self.kind, (*kinds, "rougeL", "rougeLsum"), "reward 'rouge'")
        one_of("measure", self.measure, MEASURES, "reward 'rouge'")
        one_of("sentences", self.sentences, ("lines", "marks"), "reward 'rouge'")

    def compare(self, text: str, references: Sequence[str]) -> float:
        """The measure beside the reference of best F-measure."""
        if self.sentences == "marks":
            text, *references = ("\n".join(sentences(part)) for part in (text, *references))
        best = self._scorer.score_multi(references, text)[self.kind]
        return float(getattr(best, self.measure))

    @cached_property
    def _scorer(self) -> Any:
        scorer = require("rouge_score.rouge_scorer", EXTRA, "reward 'rouge'")
        tokenize = require("rouge_score.tokenize", EXTRA, "reward 'rouge'").tokenize
        stemmer = _stemmer() if self.stemmer else None
        tokens = lru_cache(KEPT)(lambda text: tokenize(text, stemmer))
        return scorer.RougeScorer([self.kind], tokenizer=SimpleNamespace(tokenize=tokens))


@dataclass(frozen=True, kw_only=True)
class SacreBLEU(Overlap):
    """Sentence-level BLEU of Papineni et al. (2002), as in sacrebleu, from 0 to 1.

    Attributes:
        tokenize: sacrebleu's tokenizer: ``13a``, ``intl``, ``char``, ``zh`` or ``none``.
        lowercase: compare in lower case.
        smooth: ``exp``, ``floor``, ``add-k`` or ``none``.
        order: the longest n-grams; as long as the text allows where it is shorter.
    """

    name: ClassVar[str] = "sacrebleu"
    tokenize: str = "13a"
    lowercase: bool = False
    smooth: str = "exp"
    order: int = 4

    def __post_init__(self) -> None:
        one_of("tokenize", self.tokenize, BLEU_TOKENIZERS, "reward 'sacrebleu'")
        one_of("smooth", self.smooth, ("exp", "floor", "add-k", "none"), "reward 'sacrebleu'")
        whole_number("order", self.order, f"reward {self.name!r}")

    def compare(self, text: str, references: Sequence[str]) -> float:
        """BLEU beside all references at once."""
        score = float(self.bleu.sentence_score(text, list(references)).score)
        return min(score / 100, 1.0)  # sacrebleu's may be a rounding error above 100

    @cached_property
    def bleu(self) -> Any:
        """sacrebleu's own metric with these settings."""
        metrics = require("sacrebleu.metrics", EXTRA, "reward 'sacrebleu'")
        return metrics.BLEU(
            tokenize=self.tokenize,
            lowercase=self.lowercase,
            smooth_method=self.smooth,
            max_ngram_order=self.order,
            effective_order=True,
        )
