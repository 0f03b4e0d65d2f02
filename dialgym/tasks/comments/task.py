"""The rules of Comments."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dialgym.errors import finite_number, one_of, whole_number
from dialgym.language import Utterance
from dialgym.language.text import CHARSET
from dialgym.optional import check_installed
from dialgym.rewards import Components, Composite, Reply, Reward, make_rewards
from dialgym.rewards.bayes import Judge
from dialgym.rewards.degenerate import is_degenerate
from dialgym.tasks.base import SYSTEM, USER, Facts, Outcome
from dialgym.tasks.briefs import usual_conditions
from dialgym.tasks.comments.corpus import UNKNOWN_LABEL, CommentCorpus, load_corpus, load_splits
from dialgym.tasks.comments.rewards import (
    LOGGED,
    TRANSFORMS,
    LabelledToxicity,
    LevelExamples,
    Score,
    transformed,
)
from dialgym.tasks.comments.types import CommentsState
from dialgym.tasks.hidden import reveal
from dialgym.tasks.replies import ReplyTask

SCALES = {"toxicity": -5.0, "noised-toxicity": -5.0, "score": 1.0, "model": 1.0}
"""The rewards, and what they are multiplied by unless told otherwise."""
LEVELS = (0.0, 1.0, 2.0)
"""Harmless, mildly toxic, severely."""
NO_COMMENT = "no comment"
"""The component of the reward of what is no comment."""

POLICIES = "dialgym.tasks.replies"


class Comments(ReplyTask):
    """Comment on what somebody wrote, in one utterance.

    A comment of the data is drawn. The `system` reads what it was on (the parent, said by the
    `user`) and writes a comment of its own; then the dialogue is over (terminated).

    Rewards: ``scale * value + shift``, where the value is that of `reward`:

    - ``toxicity``: how toxic the comment is: 0 not at all, 1 mildly, 2 severely.
    - ``noised-toxicity``: the same, but a 1 becomes 0 or 2, at random.
    - ``score``: how the comment was received, where it is the one of the data; else what a model
      predicts from parent and comment.
    - ``model``: what the model predicts, whatever the comment.

    A text without a word, one that repeats itself or the parent, or a row of key words is no
    comment (`dialgym.rewards.degenerate`): its reward, ``no comment``, is the lowest that there is.
    The user is not rewarded. Any text is legal; what is beyond the limits is cut. It is a success
    if the reward is in the upper half of what it can be.

    Args:
        data: None for the built-in comments (generated); else a file, folder or zip of rows in
            JSONL, JSON, CSV or Parquet, or ``hf:NAME`` or ``hf:NAME@REVISION``. A row
            has a ``comment`` and may have a ``parent``, a ``score`` and a ``toxicity`` (0-2). Posts
            will do: ``title`` is the parent then, ``selftext`` the comment. So will the original's
            files: ``comments_positive.csv`` and ``comments_negative.csv`` (``parent_text``,
            ``text``), with or without the ``*_idxs.json`` of their splits.
        split: ``train``, ``validation``, ``test``, or what the data calls its own.
        reward: one of the above.
        parent: whether the system reads the parent. The rewards always do.
        scale: None for -5 of toxicity (as ILQL's settings have it), 1 of scores.
        shift: is added.
        scores: what is made of scores: ``"log"`` (sign and logarithm of 1 + size), ``"sign"``
            (1 above 0, else -1; a predicted score too) or ``"raw"``.
        model: what judges, in place of what is learned here from the training split (of toxicity
            where the data has labels of it, with the built-in rules): the folder or ``hf:NAME`` of
            a classifier, settings of the reward ``toxicity`` or ``learned``, such as
            ``{"data": PATH}`` of labelled texts to learn toxicity from, or a `Reward`.
        reply_tokens: most tokens of a comment, ``<end>`` included, where tokens are pieces of
            words.
        parent_tokens: the same of a parent.
        longest: most characters of either.

    Options of reset: ``index``, a number from 0 to ``len(task.corpus) - 1``. Batched views take a
    list, a value for each row.

    Versions:
        v0: the first, of dialgym 0.1.

    Raises:
        ValueError: a setting is not one of the above, or the data is not usable.
        ImportError: the extra ``rewards`` is not installed.

    Source: the task is that of ILQL (Snell et al., 2022), there on Reddit's comments.
    """

    name = "Comments"
    how_to_play = {  # noqa: RUF012
        "system": "Write a comment on what somebody wrote.",
        "user": "You have written what is commented on, and say nothing more.",
    }
    options = ("index",)
    tokenizer = "bpe"
    speakers = {  # noqa: RUF012
        SYSTEM: {
            "logged": f"{POLICIES}:LoggedReply",
            "best": "dialgym.tasks.comments.policies:BestComment",
            "random": f"{POLICIES}:RandomReply",
        }
    }
    hidden_fields = {SYSTEM: ("index",)}  # noqa: RUF012

    def __init__(
        self,
        data: Any = None,
        split: str = "train",
        reward: str = "toxicity",
        parent: bool = True,
        scale: float | None = None,
        shift: float = 0.0,
        scores: str = "log",
        model: Any = None,
        reply_tokens: int = 48,
        parent_tokens: int = 48,
        longest: int = 400,
    ) -> None:
        one_of("reward", reward, SCALES, self.name)
        one_of("scores", scores, TRANSFORMS, self.name)
        self.data, self.split, self.reward, self.parent = data, split, reward, parent
        self.stand_in = "built-in" if data is None else None
        self.transform, self.shift = scores, finite_number(f"shift of {self.name}", shift)
        scale = SCALES[reward] if scale is None else scale
        self.scale = finite_number(f"scale of {self.name}", scale)
        self.longest = whole_number("longest", longest, self.name)
        self.pieces = {
            SYSTEM: whole_number("reply_tokens", reply_tokens, self.name, 2),
            USER: whole_number("parent_tokens", parent_tokens, self.name, 2),
        }
        load_corpus(data, split)  # so that it is missed at once where it is not there
        self.rewards = self._rewards(model)
        self.facts = self._facts()

    def _rewards(self, model: Any) -> Composite:
        """The value of a comment, before scale and shift."""
        spec = {self._component: {"weight": 1.0, **self._judge(model)}}
        return make_rewards(spec, guarded=False)  # the lowest reward is known after the scale

    def _judge(self, model: Any) -> Mapping[str, Any]:
        """Which reward gives the value."""
        toxic = self._component == "toxicity"
        if isinstance(model, Reward):
            return {"reward": model}
        if model is not None and not isinstance(model, str | Mapping):
            raise ValueError(
                f"model of {self.name} must be the name of a classifier, settings of a reward such "
                f"as {{'data': PATH}}, or a Reward; got {model!r}."
            )
        if model is not None:
            settings = {"model": model} if isinstance(model, str) else dict(model)
            return {"values": LEVELS, **settings} if toxic else {"reward": "learned", **settings}
        check_installed("rewards", f"{self.name} with its own rewards", "sklearn")
        if not toxic:
            return {"reward": Score(self.data, self.transform, self.reward == "model")}
        training = load_splits(self.data).get("train")
        if training is None or len(set(training.toxicity) - {UNKNOWN_LABEL}) < 2:
            return {"values": LEVELS}
        return {"reward": LabelledToxicity(values=LEVELS, comments=self.data)}

    @property
    def _component(self) -> str:
        """Name by which the reward is logged."""
        return "toxicity" if self.reward.endswith("toxicity") else "score"

    def _facts(self) -> Facts:
        low, high = sorted(self.scale * bound + self.shift for bound in self.rewards.bounds)
        return Facts(
            turn_limit=1,
            longest={SYSTEM: self.longest, USER: self.longest},
            heard={
                SYSTEM: {SYSTEM: 1, USER: int(self.parent)},
                USER: {SYSTEM: 1, USER: 1},
            },
            returns={SYSTEM: (low, high), USER: (0.0, 0.0)},
            charset=CHARSET,
            hidden={SYSTEM: ("the comment of the data", *([] if self.parent else ["the parent"]))},
            pieces=self.pieces,
            components={SYSTEM: (self._component, *(["shift"] if self.shift else []), NO_COMMENT)},
        )

    @cached_property
    def corpus(self) -> CommentCorpus:
        """The comments of the split."""
        return load_corpus(self.data, self.split)

    def initial(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> CommentsState:
        index = self.check_options(options).get("index")
        count = len(self.corpus)
        if index is None:
            return CommentsState(int(rng.integers(count)))
        return CommentsState(whole_number("option 'index'", index, self.name, 0, count - 1))

    def speaker(self, state: CommentsState) -> str:
        return SYSTEM

    def transcript(self, state: CommentsState, party: str) -> Sequence[Utterance]:
        if party == SYSTEM and not self.parent:
            return state.lines
        text = self.corpus.parents[reveal(state.index)][: self.longest]
        return [Utterance(USER, text, private=not self.parent), *state.lines]

    def conditions(self, party: str) -> Sequence[str]:
        """For the system those on turns and lengths, and what a good comment is."""
        if party == USER:
            return ()
        what = "toxic it is" if self._component == "toxicity" else "readers like it"
        better = f"The {'less' if self.scale < 0 else 'more'} {what}, the better."
        none = "A text without a word, one that repeats itself, a row of key words: the worst."
        return [*usual_conditions(self, party), better, none]

    def scenario(self, state: CommentsState, party: str) -> str:
        """The text that the user has written, where the system does not read it."""
        written = super().scenario(state, party)
        return f"You have written: {written}" if written else ""

    def logged(self, state: CommentsState) -> str:
        """The comment of the data."""
        return self.corpus.comments[state.index][: self.longest]

    def random_reply(self, rng: np.random.Generator) -> str:
        """A comment on anything in the split."""
        comments = self.corpus.comments
        return comments[int(rng.integers(len(comments)))][: self.longest]

    def take(self, state: CommentsState, text: str) -> Reply:
        state.lines.append(Utterance(SYSTEM, text))
        return self.reply(state, text)

    def reply(self, state: CommentsState, text: str) -> Reply:
        """Input of the rewards if `text` were the comment."""
        score = self.corpus.scores[state.index]
        labels = {} if np.isnan(score) else {LOGGED: float(transformed(score, self.transform))}
        return Reply(text, (self.corpus.parents[state.index],), (self.logged(state),), labels)

    def judge(self) -> Reward:
        """Return True if a comment is harmless, by naive Bayes on the validation split."""
        return Judge(LevelExamples(self.data, "validation"), wanted="0")

    def conclude(
        self, state: CommentsState, scores: Components, rng: np.random.Generator
    ) -> Outcome:
        if is_degenerate(self.reply(state, state.lines[-1].text)):
            low, _ = self.facts.returns[SYSTEM]
            return Outcome.of({SYSTEM: {NO_COMMENT: low}, USER: {}}, True, False, False)
        value = scores[self._component]
        if self.reward == "noised-toxicity" and value == 1:
            value = 2.0 * int(rng.integers(2))
        components = {self._component: self.scale * value}
        if self.shift:
            components["shift"] = self.shift
        success = sum(components.values()) > sum(self.facts.returns[SYSTEM]) / 2
        return Outcome.of({SYSTEM: components, USER: {}}, True, False, success)

    def __getstate__(self) -> dict[str, Any]:
        """Without the comments, which the other process reads from the data or the cache."""
        return {name: value for name, value in self.__dict__.items() if name != "corpus"}
