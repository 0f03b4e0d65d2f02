"""The rules of logged dialogues."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dialgym.errors import whole_number
from dialgym.io.tables import fingerprint
from dialgym.language import Utterance
from dialgym.rewards import Components, Reply, make_rewards
from dialgym.tasks.base import SYSTEM, USER, Facts, Outcome
from dialgym.tasks.logged.corpus import LoggedCorpus, Sizes, check_split, folder_of, load_corpus
from dialgym.tasks.logged.types import LoggedState
from dialgym.tasks.replies import ReplyTask, midpoint

REWARDS = {"f1": 1.0}
CONTEXT = 5
"""Most utterances that rewards see before a reply."""

POLICIES = "dialgym.tasks.replies"


class Logged(ReplyTask):
    """Talk as in your own dialogues, which `dialgym import` has read.

    The dialogues are there to be learned from: they are stored with the rewards that they came
    with, and every algorithm that learns from stored dialogues takes them. Where one is played, a
    logged dialogue is drawn and begins as it did; the learner (`system`) speaks in the place of its
    system, and the `user` says what its user said next, whatever the system has made of it.

    Rewards: nobody knows what those who rated the log would have given for what is said now. After
    each utterance of the learner there are the weighted scores of `rewards`, each by its name; they
    see what was said, the last 5 utterances before it, and what the log has there. By default it is
    the F1 of their words: it measures likeness to the log, not what the log was rewarded for. A
    reward model that was trained on ratings is ``{"learned": {"model": FOLDER}}``.

    The dialogue is over (terminated) after as many utterances of the system as the log has. It is a
    success if the mean reward of its utterances is in the upper half of what the rewards can give.
    Any text is a legal utterance; what is beyond the limits is cut.

    Args:
        data: the folder that ``dialgym import FILE --out FOLDER`` wrote; ``hf:NAME`` or
            ``hf:NAME@REVISION`` of the Hugging Face hub; None for some invented conversations of a
            shop's customers, to try things with.
        split: the dialogues that are played: ``train``, ``validation`` or ``test``; None for all.
        rewards: what utterances are scored by, see `dialgym.rewards.make_rewards`; None for ``f1``.

    Options of reset: ``dialogue``, a number from 0 to the number of dialogues - 1.

    Versions:
        v0: the first, of dialgym 0.1.

    Raises:
        ValueError: the data is no folder of imported dialogues, or rewards cannot be.
    """

    name = "Logged"
    how_to_play = {  # noqa: RUF012
        "system": "Go on with the conversation in the place of its system: say what comes next.",
        "user": "Go on with the conversation in the place of its user: say what comes next.",
    }
    options = ("dialogue",)
    speakers = {  # noqa: RUF012
        USER: {"script": f"{POLICIES}:LoggedReply"},
        SYSTEM: {
            "reference": f"{POLICIES}:LoggedReply",
            "random": f"{POLICIES}:RandomReply",
        },
    }
    hidden_fields = dict.fromkeys((SYSTEM, USER), ("dialogue", "turn"))

    def __init__(
        self,
        data: Any = None,
        rewards: Mapping[str, Any] | None = None,
        split: str | None = None,
    ) -> None:
        self.data, self.folder, self.split = data, folder_of(data), check_split(split)
        sizes = Sizes.read(self.folder)
        self.rewards = make_rewards(REWARDS if rewards is None else rewards)
        self.tokenizer = _tokenizer_in(self.folder, sizes.tokenizer)  # type: ignore[misc]
        low, high = self.rewards.bounds
        returns = (min(low, low * sizes.turns), max(high, high * sizes.turns))
        self.facts = Facts(
            turn_limit=sizes.turns,
            longest=sizes.longest,
            heard={SYSTEM: sizes.heard, USER: sizes.heard},
            returns={SYSTEM: returns, USER: (0.0, 0.0)},
            charset=sizes.charset,
            hidden=dict.fromkeys((SYSTEM, USER), ("what was said in the log",)),
            pieces=sizes.pieces,
            components={SYSTEM: tuple([part.name for part in self.rewards.parts])},
        )

    @classmethod
    def surroundings(cls, settings: Mapping[str, Any]) -> str:
        """The state of the folder that the setting `data` names."""
        return fingerprint(folder_of(settings.get("data")))

    @cached_property
    def corpus(self) -> LoggedCorpus:
        """The dialogues."""
        return load_corpus(self.folder, self.split)

    def initial(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> LoggedState:
        given = self.check_options(options).get("dialogue")
        count = len(self.corpus)
        if given is None:
            dialogue = int(rng.integers(count))
        else:
            dialogue = whole_number("option 'dialogue'", given, self.name, 0, count - 1)
        first, start = self.corpus.first(dialogue), self.corpus.starts[dialogue]
        lines = [Utterance(USER, self._fitting(turn)) for turn in range(start, first)]
        return LoggedState(dialogue, first, lines=lines)

    def _fitting(self, turn: int) -> str:
        """Utterance at a turn of the corpus, as far as the limits allow."""
        party = SYSTEM if self.corpus.own[turn] else USER
        return self.corpus.texts[turn][: self.facts.longest[party]]

    def speaker(self, state: LoggedState) -> str:
        answered = not state.lines or state.lines[-1].speaker == USER
        return SYSTEM if answered or state.over else USER

    def transcript(self, state: LoggedState, party: str) -> Sequence[Utterance]:
        return state.lines

    def logged(self, state: LoggedState) -> str:
        """Utterance of the log in the place of the next one."""
        return self._fitting(state.turn)

    def random_reply(self, rng: np.random.Generator) -> str:
        """An utterance of the system anywhere in the log."""
        said = self.corpus.said
        return self.corpus.texts[said[int(rng.integers(len(said)))]]

    def take(self, state: LoggedState, text: str) -> Reply:
        context = tuple([line.text for line in state.lines[-CONTEXT:]])
        reply = Reply(text, context, (self.logged(state),))
        state.lines.append(Utterance(SYSTEM, text))
        state.said += 1
        state.turn += 1
        return reply

    def conclude(self, state: LoggedState, scores: Components, rng: np.random.Generator) -> Outcome:
        state.gained += sum(scores.values())
        state.over = not self.corpus.goes_on(state.dialogue, state.turn)
        success = state.gained / state.said > midpoint(self.rewards) if state.over else None
        return Outcome.of({SYSTEM: scores, USER: {}}, state.over, False, success)

    def listen(self, state: LoggedState, text: str) -> Outcome:
        state.lines.append(Utterance(USER, text))
        state.turn += 1
        return Outcome.of({SYSTEM: {}, USER: {}})

    def __getstate__(self) -> dict[str, Any]:
        """Without the dialogues, which the other process reads from the folder or the cache."""
        return {name: value for name, value in self.__dict__.items() if name != "corpus"}


def _tokenizer_in(folder: Any, spec: str) -> str:
    """A tokenizer's name, with the path of the file that it means in the folder."""
    kind, _, name = spec.partition(":")
    return f"bpe:{folder / name}" if kind == "bpe" and name else spec
