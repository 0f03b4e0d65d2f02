"""The rules of DailyDialog."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dialgym.errors import one_of, whole_number
from dialgym.language import Utterance
from dialgym.language.text import CHARSET
from dialgym.optional import check_installed
from dialgym.rewards import Components, Reply, Reward, make_rewards
from dialgym.rewards.bayes import Judge
from dialgym.rewards.judges import Intent
from dialgym.tasks.base import SYSTEM, USER, Facts, Outcome
from dialgym.tasks.corpora import training_split
from dialgym.tasks.daily_dialog.corpus import (
    ActExamples,
    DailyDialogCorpus,
    data_named,
    load_corpus,
    load_splits,
)
from dialgym.tasks.daily_dialog.types import DailyDialogState
from dialgym.tasks.replies import ReplyTask, midpoint

REWARDS = {
    "meteor": 1.0,
    "rouge1": 0.5,
    "sacrebleu": 1.0,
    "intent": 0.25,
    "length": {"weight": 0.1, "low": 9},
}
"""RL4LMs and OpenRL have half METEOR, half intent: small models then do the act in few words."""
STARTS = ("any", "first")

POLICIES = "dialgym.tasks.replies"
RETRIEVAL = "dialgym.tasks.daily_dialog.policies:Retrieval"


class DailyDialog(ReplyTask):
    """Say the next utterance of an everyday dialogue.

    A dialogue that people had is drawn, and a turn in it. The learner (`system`) has seen the last
    utterances before that turn, as if it had been one of the two who spoke, and says what comes
    next. With more than one of `turns` the `user` answers, and so on in turns, until the learner
    has had them all or the people's dialogue has no more turns.

    Rewards: after each utterance of the learner the weighted scores of `rewards`, each by its
    name. They see what was said, the last `context` utterances before it, what the person said
    there, and the `act` and `emotion` of that. The user is not rewarded. Any text is a legal
    utterance; what is beyond the limits is cut.

    The dialogue is over (terminated) after the learner's last turn. It is a success if the mean
    reward of its utterances is in the upper half of what the rewards can give.

    Args:
        data: None for what ``$DIALGYM_DAILYDIALOG`` names, and where that names nothing for the
            built-in dialogues (generated, with acts); else a file, folder or zip:
            ConvLab's unified format, DailyDialog's original release, or rows in JSONL, JSON or
            Parquet; or ``hf:NAME`` or ``hf:NAME@REVISION`` of the Hugging Face hub.
        split: ``train``, ``validation``, ``test``, or what the data calls its own.
        turns: most utterances of the learner.
        start: a dialogue begins at ``"any"`` turn, or near the ``"first"``: the learner is either
            the one who answers the first `least_context` utterances or the other one.
        context: most utterances that it begins with, and that rewards see before a reply.
        least_context: fewest utterances that it begins with.
        rewards: what utterances are scored by, see `dialgym.rewards.make_rewards`; None for
            METEOR + ROUGE-1 / 2 + BLEU + intent / 4 + length / 10.
        reply_tokens: most tokens of an utterance of the system, ``<end>`` included, where tokens
            are pieces of words.
        context_tokens: the same of the user.
        longest: most characters of an utterance of either.

    Options of reset: ``index``, a number from 0 to ``len(task.places) - 1``: each place of the
    split in order, to go through it once; or ``dialogue``, and with it ``turn`` (from 1), to
    choose one. Batched views take lists, a value for each row.

    Versions:
        v0: the first, of dialgym 0.1.

    Raises:
        ValueError: a setting is not one of the above, the data is not usable, or the rewards ask
            for acts that it does not have.
        ImportError: the extra ``rewards`` is not installed.

    Source: the task is that of RL4LMs (Ramamurthy et al., 2023) and OpenRL's example, there with
    one turn and ``least_context=5``. DailyDialog itself (Li et al., 2017) is under CC BY-NC-SA
    4.0 and no part of this package.
    """

    name = "DailyDialog"
    how_to_play = {  # noqa: RUF012
        "system": "Go on with the conversation: say what comes next.",
        "user": "Answer the system as in an everyday conversation.",
    }
    options = ("index", "dialogue", "turn")
    tokenizer = "bpe"
    speakers = {  # noqa: RUF012
        USER: {"script": f"{POLICIES}:LoggedReply", "retrieval": RETRIEVAL},
        SYSTEM: {
            "reference": f"{POLICIES}:LoggedReply",
            "retrieval": RETRIEVAL,
            "random": f"{POLICIES}:RandomReply",
        },
    }
    hidden_fields = dict.fromkeys((SYSTEM, USER), ("dialogue", "turn"))

    def __init__(
        self,
        data: Any = None,
        split: str = "train",
        turns: int = 1,
        start: str = "any",
        context: int = 5,
        least_context: int = 1,
        rewards: Mapping[str, Any] | None = None,
        reply_tokens: int = 20,
        context_tokens: int = 32,
        longest: int = 300,
    ) -> None:
        one_of("start", start, STARTS, self.name)
        self.data, self.split, self.start = data_named(data), split, start
        self.stand_in = "built-in" if self.data is None else None
        self.turns = whole_number("turns", turns, self.name)
        self.context = whole_number("context", context, self.name)
        self.least_context = whole_number("least_context", least_context, self.name, 1, context)
        self.longest = whole_number("longest", longest, self.name)
        self.pieces = {
            SYSTEM: whole_number("reply_tokens", reply_tokens, self.name, 2),
            USER: whole_number("context_tokens", context_tokens, self.name, 2),
        }
        if rewards is None:
            needed = ("nltk", "rouge_score", "sacrebleu", "sklearn")
            check_installed("rewards", f"{self.name} with its own rewards", *needed)
        spec = REWARDS if rewards is None else rewards
        self.examples = ActExamples(self.data, self.context)
        self.rewards = make_rewards(spec, self.examples)
        self._check()
        self.facts = self._facts()

    @classmethod
    def surroundings(cls, settings: Mapping[str, Any]) -> str | None:
        return super().surroundings({**settings, "data": data_named(settings.get("data"))})

    def _check(self) -> None:
        """Raise a ValueError where the dialogues are not what the settings need."""
        intents = [part.reward for part in self.rewards.parts if isinstance(part.reward, Intent)]
        if any(intent.model is None for intent in intents):
            training_split(load_splits(self.data), self.data, f"{self.name}: the reward 'intent'")
        if intents and not self.corpus.acts.all():
            raise ValueError(
                f"{self.name}: the reward 'intent' needs the act of every utterance, which "
                f"the data {str(self.data)!r} does not have. Give other rewards=, such as "
                "{'meteor': 1.0}."
            )
        if not len(self.places):
            raise ValueError(
                f"{self.name}: no dialogue of the split {self.split!r} has an utterance with "
                f"{self.least_context} before it. Lower least_context=, or give longer dialogues."
            )

    def _facts(self) -> Facts:
        begun = self._begins_with()
        heard = {SYSTEM: begun // 2 + self.turns, USER: (begun + 1) // 2 + self.turns - 1}
        low, high = self.rewards.bounds
        returns = (min(low, low * self.turns), max(high, high * self.turns))
        return Facts(
            turn_limit=self.turns,
            longest={SYSTEM: self.longest, USER: self.longest},
            heard={SYSTEM: heard, USER: heard},
            returns={SYSTEM: returns, USER: (0.0, 0.0)},
            charset=CHARSET,
            hidden={SYSTEM: ("the person's reply",), USER: ("the person's reply",)},
            pieces=self.pieces,
            components={SYSTEM: tuple([part.name for part in self.rewards.parts])},
        )

    @cached_property
    def corpus(self) -> DailyDialogCorpus:
        """The dialogues of the split."""
        return load_corpus(self.data, self.split)

    @cached_property
    def training(self) -> DailyDialogCorpus:
        """The dialogues of the training split, or of the task's own where there is none."""
        if self.split == "train":
            return self.corpus
        return load_splits(self.data).get("train", self.corpus)

    @cached_property
    def places(self) -> np.ndarray:
        """(P, 2) int64: the dialogue and turn of all that the learner can be asked to say first."""
        last = self.least_context + 1 if self.start == "first" else None
        return self.corpus.places(self.least_context, last)

    def initial(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> DailyDialogState:
        dialogue, turn = self._place(rng, self.check_options(options))
        texts = self.corpus.context(dialogue, turn, self._begins_with())
        parties = [(USER, SYSTEM)[(len(texts) - 1 - i) % 2] for i in range(len(texts))]
        lines = [Utterance(p, t[: self.longest]) for p, t in zip(parties, texts)]
        return DailyDialogState(dialogue, turn, lines=lines)

    def _begins_with(self) -> int:
        """Most utterances that a dialogue begins with."""
        first = self.start == "first"
        return min(self.context, self.least_context + 1) if first else self.context

    def _place(self, rng: np.random.Generator, options: Mapping[str, Any]) -> tuple[int, int]:
        """The dialogue and turn that `options` name, or a random one; all are equally likely."""
        chosen = {name: value for name, value in options.items() if value is not None}
        if "dialogue" in chosen:
            return self._place_in(rng, **chosen)
        if "turn" in chosen:
            raise ValueError(f"option 'turn' of {self.name} needs the option 'dialogue'.")
        count = len(self.places)
        if "index" in chosen:
            index = whole_number("option 'index'", chosen["index"], self.name, 0, count - 1)
        else:
            index = int(rng.integers(count))
        dialogue, turn = self.places[index].tolist()
        return dialogue, turn

    def _place_in(
        self, rng: np.random.Generator, dialogue: Any, turn: Any = None, index: Any = None
    ) -> tuple[int, int]:
        if index is not None:
            raise ValueError(f"options of {self.name}: give 'index', or 'dialogue' and 'turn'.")
        last = len(self.corpus) - 1
        dialogue = whole_number("option 'dialogue'", dialogue, self.name, 0, last)
        if turn is not None:
            length = self.corpus.length(dialogue)
            return dialogue, whole_number("option 'turn'", turn, self.name, 1, length - 1)
        begin, end = np.searchsorted(self.places[:, 0], [dialogue, dialogue + 1])
        if begin == end:
            raise ValueError(
                f"option 'dialogue' of {self.name}: dialogue {dialogue} is too short to begin "
                f"with {self.least_context} utterances. Choose another."
            )
        return dialogue, int(self.places[rng.integers(begin, end), 1])

    def speaker(self, state: DailyDialogState) -> str:
        return SYSTEM if state.said == state.answered else USER

    def transcript(self, state: DailyDialogState, party: str) -> Sequence[Utterance]:
        return state.lines

    def human(self, state: DailyDialogState) -> str:
        """Utterance of the person whose place the next speaker has."""
        return self.corpus.text(state.dialogue, state.turn)

    def logged(self, state: DailyDialogState) -> str:
        """The same, within the limit."""
        return self.human(state)[: self.longest]

    def random_reply(self, rng: np.random.Generator) -> str:
        """An utterance of anybody in the training split."""
        texts = self.training.texts
        return texts[int(rng.integers(len(texts)))][: self.longest]

    def take(self, state: DailyDialogState, text: str) -> Reply:
        context = tuple([line.text for line in state.lines[-self.context :]])
        labels = self.corpus.labels(state.dialogue, state.turn)
        reply = Reply(text, context, (self.human(state),), labels)
        state.lines.append(Utterance(SYSTEM, text))
        state.said += 1
        state.turn += 1
        return reply

    def conclude(
        self, state: DailyDialogState, scores: Components, rng: np.random.Generator
    ) -> Outcome:
        state.gained += sum(scores.values())
        more = state.turn + 1 < self.corpus.length(state.dialogue)
        state.over = state.said == self.turns or not more
        success = state.gained / state.said > midpoint(self.rewards) if state.over else None
        return Outcome.of({SYSTEM: scores, USER: {}}, state.over, False, success)

    def listen(self, state: DailyDialogState, text: str) -> Outcome:
        state.lines.append(Utterance(USER, text))
        state.answered += 1
        state.turn += 1
        return Outcome.of({SYSTEM: {}, USER: {}})

    def judge(self) -> Reward:
        """Return True if a reply does the person's act, by naive Bayes on the validation split."""
        return Judge(ActExamples(self.data, 0, "validation"))

    def __getstate__(self) -> dict[str, Any]:
        """Without the dialogues, which the other process reads from the data or the cache."""
        left_out = ("corpus", "training", "places")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}
