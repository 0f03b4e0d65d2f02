"""The base class of tasks: rules as functions of an explicit state."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from dialgym.errors import check_flags, unknown, with_settings
from dialgym.io.json_leaves import plain_value
from dialgym.io.objects import by_name, load, resolve, shortened
from dialgym.language import AnyText, Constraint, Utterance
from dialgym.rewards import Components
from dialgym.simulators import Speaker
from dialgym.tasks.acts import PartyActs
from dialgym.tasks.batch import DialogueBatch
from dialgym.tasks.briefs import instructions_of, leading_notes, usual_conditions
from dialgym.tasks.findings import Findings
from dialgym.tasks.hidden import hide

Parties = tuple[str, ...]
SYSTEM, USER = "system", "user"


class Features(NamedTuple):
    """Form of the array that a party is given beside its transcript: the features of an image."""

    shape: tuple[int, ...]
    low: float = 0.0
    high: float = 1.0
    dtype: str = "float32"


@dataclass(frozen=True)
class Facts:
    """The fixed properties of a task; declared here and tested by `dialgym.testing`.

    Attributes:
        turn_limit: most utterances of the learner in one dialogue.
        longest: characters in the longest meaningful utterance of each party.
        heard: for each party, the most utterances by each speaker that it can come to see.
        returns: lowest and highest return of each party.
        charset: the characters that utterances are made of.
        hidden: what each party is not told, in words; see `Task.hidden_fields`.
        may_end: the parties whose utterance can end the dialogue.
        words: for each party, the most words of an utterance that it sees, by speaker; what a word
            tokenizer makes room for. None to make as much room as for characters.
        pieces: the most tokens of an utterance, by speaker, where tokens are pieces of words (BPE);
            longer ones are cut. None to make as much room as for characters.
        ordinary: characters of an utterance that ordinary dialogues stay within, by speaker. Where
            tokens are pieces of words, a learner says no more tokens than that, and default windows
            make room for half as many in each utterance; longer ones are heard whole. None to make
            room for the longest everywhere.
        components: for each party, the names of the parts that its rewards are made of; a party
            that is not named has none.
        features: for each party that is given them, the form of `Task.features`.
        metrics: the names of what `Task.metrics` measures.
    """

    turn_limit: int
    longest: Mapping[str, int]
    heard: Mapping[str, Mapping[str, int]]
    returns: Mapping[str, tuple[float, float]]
    charset: str
    hidden: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    may_end: tuple[str, ...] = (SYSTEM,)
    words: Mapping[str, Mapping[str, int]] | None = None
    pieces: Mapping[str, int] | None = None
    ordinary: Mapping[str, int] | None = None
    components: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    features: Mapping[str, Features] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()

    @cached_property
    def characters(self) -> frozenset[str]:
        """Those of the charset; every utterance is held against them."""
        return frozenset(self.charset)

    def limit(self, speaker: str) -> int:
        """Most tokens of one utterance, and most characters that are looked at.

        One more than the longest meaningful utterance, which leaves room for ``<end>`` and lets
        an utterance that runs on be told from a whole one.
        """
        return self.longest[speaker] + 1

    def word_limit(self, party: str, speaker: str) -> int:
        """Most words that `party` sees of one utterance of `speaker`; see `limit`."""
        return self.limit(speaker) if self.words is None else self.words[party][speaker] + 1

    def piece_limit(self, speaker: str) -> int:
        """Most tokens of one utterance of `speaker`, ``<end>`` included, in pieces of words."""
        return self.limit(speaker) if self.pieces is None else self.pieces[speaker]

    def ordinary_limit(self, speaker: str) -> int:
        """Tokens of an utterance of `speaker` to make room for, in pieces of words."""
        most = self.piece_limit(speaker)
        return most if self.ordinary is None else min(most, self.ordinary[speaker] + 1)


class State(Protocol):
    """One dialogue: small, picklable, and copied without sharing anything that changes.

    Type hints of its fields say all that it holds: checkpoints write and read it by them alone.
    """

    def copy(self) -> Self:
        """An independent copy."""
        ...


class Outcome(NamedTuple):
    """The result of an utterance. Its mappings may be those of others too, and are only read.

    Attributes:
        rewards: reward of each party.
        terminated: the task has ended.
        truncated: a limit has cut the dialogue short.
        components: for each party, its reward in parts by name, which add up to it; empty where
            a task does not name any.
        success: whether the task was solved; None while it is open.
    """

    rewards: Mapping[str, float]
    terminated: bool = False
    truncated: bool = False
    components: Mapping[str, Components] = {}
    success: bool | None = None

    @classmethod
    def of(
        cls,
        components: Mapping[str, Components],
        terminated: bool = False,
        truncated: bool = False,
        success: bool | None = None,
    ) -> "Outcome":
        """The outcome in which the reward of each party is the sum of its `components`."""
        rewards = {party: sum(parts.values(), 0.0) for party, parts in components.items()}
        return cls(rewards, terminated, truncated, components, success)

    def parts(self, party: str) -> Components:
        """The components of a party's reward.

        Raises:
            ValueError: there are components, but none of that party.
        """
        if not self.components:
            return {}
        if party in self.components:
            return self.components[party]
        raise ValueError(
            f"components of an Outcome: expected a mapping for each party, with {party!r} among "
            f"them; got {dict(self.components)!r}. Give {{{party!r}: {{name: value}}, ...}}."
        )


class Task(ABC):
    """The rules of a dialogue between two parties. Immutable and shared by all dialogues.

    A subclass has `name`, `facts` and `speakers`, and the methods below.
    Randomness comes from the generator that is passed in, and from nowhere else.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    """Of the rules: one more with each change that moves what is said, gained, or the end."""
    parties: ClassVar[Parties] = (SYSTEM, USER)
    sources: ClassVar[tuple[str, ...]] = ()
    """Speakers who never have the floor, such as ``tools``; in tokens they seem the other party."""
    speakers: ClassVar[Mapping[str, Mapping[str, Callable[..., Speaker] | str]]] = {}
    """Speakers of each party, by party and name, its default first. Those of the user are
    simulators, those of the system scripted policies. Each is a class or a function that makes
    one, or its ``module:name``, which is imported when it is asked for."""
    generators: ClassVar[Mapping[str, Callable[..., Any] | str]] = {}
    """Sets of related dialogues to collect, given as speakers are: `Tree`, `Scripts` or `Logs`."""
    act_classes: Mapping[str, str] = {}
    """``module:Class`` of `acts` by party; each is made of the task."""
    batches: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """By learner, ``module:Class`` of the simulator that a `batch` is for, and of the batch, which
    is made of the task and a size."""
    options: ClassVar[tuple[str, ...]] = ()
    """Names that `reset(options=...)` understands."""
    tokenizer: ClassVar[str] = "char"
    """Tokenizer of token views, unless they are given another."""
    hidden_fields: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """By party, attributes of a state that it is not told; else those that `Facts.hidden` names."""
    how_to_play: ClassVar[Mapping[str, str]] = {}
    """Rules for who plays, by party, in a sentence or two; the beginning of its `brief`."""
    verbs: ClassVar[Mapping[str, str]] = {}
    """By party that does one thing, the verb and what it is done with: ``guess(word)``."""
    splits: Mapping[str, Sequence[Mapping[str, Any]]] = {}
    """Fixed lists of dialogues by name, such as ``test``: the options of `reset` of each."""
    for_people: ClassVar[Mapping[str, Any]] = {}
    """Settings of the task that suit a person who plays it, unless told otherwise."""
    expert_for_people: ClassVar[str] = ""
    """The policy that plays with a person and gives hints; "" for the expert of the scale."""
    chat_advice: Mapping[str, str] = {}
    """Advice by party whom a language model plays badly in these settings: a `Chat` warns so."""
    facts: Facts
    played: Mapping[str, Any] = {}
    """Settings as they came out where the surroundings decide: the files that a name means."""
    stand_in: str | None = None
    """Name of what is played where the data of the settings is unavailable: ``built-in``."""
    made_with: Mapping[str, Any] | None = None
    """The arguments that it was made with, by name; None where some had no name (``*args``)."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """A task that knows its arguments, so that it can be made again elsewhere."""
        task = super().__new__(cls)
        task.made_with = by_name(cls, args, kwargs)
        check_flags(cls, task.made_with or {}, cls.__name__)
        return task

    def __repr__(self) -> str:
        given = None if self.made_with is None else self.made_with.items()
        said = "..." if given is None else ", ".join(f"{k}={shortened(v)}" for k, v in given)
        stand_in = f" ({self.stand_in})" if getattr(self, "stand_in", None) else ""
        return f"{type(self).__name__}({said}){stand_in}"

    @property
    def voices(self) -> tuple[str, ...]:
        """All speakers in transcripts: the parties, then `sources`."""
        return (*self.parties, *self.sources)

    @classmethod
    def surroundings(cls, settings: Mapping[str, Any]) -> Hashable:
        """Surroundings of a new task beside its settings, such as the state of files."""
        return None

    @cached_property
    def acts(self) -> Mapping[str, PartyActs]:
        """By party, the dialogue acts that it chooses from (`PartyActs`).

        A party without any has no act view. They are made of `act_classes` when they are asked for.
        """
        return {p: load(c, f"acts of {self.name}")(self) for p, c in self.act_classes.items()}

    @abstractmethod
    def initial(self, rng: np.random.Generator, options: Mapping[str, Any] | None = None) -> Any:
        """A fresh state; `options` fixes hidden parts of it.

        Raises:
            ValueError: an option is unknown or its value impossible.
        """

    def secrets(self) -> Sequence[Mapping[str, Any]]:
        """Options of `reset` that fix what is hidden: one for each thing it may be, all as likely.

        Empty where they are not finitely many, or a dialogue never settles on one. A panel with
        ``secrets: all`` plays each equally often.
        """
        return ()

    @abstractmethod
    def speaker(self, state: Any) -> str:
        """The party whose turn it is."""

    @abstractmethod
    def transcript(self, state: Any, party: str) -> Sequence[Utterance]:
        """The utterances that `party` has seen: append-only, private ones first."""

    @abstractmethod
    def speak(self, state: Any, text: str, rng: np.random.Generator) -> Outcome:
        """Let the party whose turn it is say `text`; changes `state`. Any text is legal."""

    def conditions(self, party: str) -> Sequence[str]:
        """Sentences for `party` on what the settings decide: turns, words, costs, the end."""
        return usual_conditions(self, party)

    @cached_property
    def instructions(self) -> Mapping[str, str]:
        """By party, the part of its brief that is the same in all dialogues."""
        return {party: instructions_of(self, party) for party in self.parties}

    def notes(self, state: Any, party: str) -> int:
        """The number of first lines of its transcript that `party` was told and did not say.

        They are part of its brief. By default the private ones that it begins with.
        """
        return leading_notes(self.transcript(state, party))

    def scenario(self, state: Any, party: str) -> str:
        """Knowledge that `party` alone has from the beginning, in words; by default its `notes`."""
        count = self.notes(state, party)
        return "\n".join([line.text for line in self.transcript(state, party)[:count]])

    def brief(self, state: Any, party: str) -> str:
        """Instructions of `party` in words: rules, conditions, and its scenario.

        Never empty, the same all dialogue long, and nothing in it that the party is not told.
        """
        scenario = self.scenario(state, party)
        return "\n\n".join(filter(None, (self.instructions[party], scenario)))

    def static_constraint(self, party: str) -> Constraint | None:
        """Constraint of `party`, where that is the same in every state; else None."""
        return AnyText()

    def union_constraint(self, party: str) -> Constraint | None:
        """Constraint of all that `party` may say in any state, for plans of its utterances."""
        return self.static_constraint(party)

    def constraint(self, state: Any, party: str) -> Constraint:
        """Constraint of `party` in this state: the source of every action mask."""
        return self.static_constraint(party) or AnyText()

    def observed(self, state: Any, party: str) -> Any:
        """A copy of a state for who plays `party`: what the party is not told refuses to be read.

        Scripted policies get it, so that none profits from what is hidden, or changes anything.
        By default the attributes of `hidden_fields` are hidden; a task whose state has hidden
        parts within its parts hides them here.
        """
        named = self.facts.hidden.get(party, ())
        names = self.hidden_fields.get(party) or [name for name in named if hasattr(state, name)]
        return hide(state, names, self.name, party)

    def features(self, state: Any, party: str) -> np.ndarray | None:
        """Features of `party` beside its transcript, a new array in the form of `Facts.features`.

        It changes only by an utterance. None for a party that is given nothing.
        """
        return None

    def metrics(self, state: Any) -> Mapping[str, float]:
        """Measures of a dialogue that is over, by the names of `Facts.metrics`.

        From 0 to 1 beside success and return; -1 where there was nothing to measure.
        """
        return {}

    def findings(self, state: Any) -> Findings:
        """Findings about a dialogue that is over, which `dialgym.experiments.analyze` counts."""
        return Findings()

    def situation(self, state: Any, party: str) -> Any:
        """Knowledge of `party`, equal in dialogues that are alike to it: the source of `anchor`.

        Of strings, numbers, arrays, sets (where no order matters), sequences and mappings with
        names as keys; by default what is in its transcript.
        """
        return self.transcript(state, party)

    def anchor(self, state: Any, party: str) -> str:
        """16 hexadecimal digits that name the situation of `party`, in any process and run."""
        known = [party, self.situation(state, party)]
        text = json.dumps(known, sort_keys=True, default=plain_value)
        return blake2b(text.encode(), digest_size=8).hexdigest()

    def batch(self, size: int, learner: str, simulator: Speaker) -> DialogueBatch | None:
        """A vectorised form of `size` dialogues with a `simulator`, or None where there is none."""
        if learner not in self.batches:
            return None
        simulated, form = self.batches[learner]
        what = f"batch of {self.name}"
        fits = type(simulator) is load(simulated, what)
        return load(form, what)(self, size) if fits else None

    def speaker_named(self, party: str, name: str, **settings: Any) -> Speaker:
        """A new speaker for `party`, by its registered name and with settings of its own.

        Raises:
            ValueError: the party has no speaker of that name, or the speaker no such setting.
        """
        named = self.speakers.get(party, {})
        if name not in named:
            raise unknown(f"speaker for the {party}", name, named, self.name)
        what = f"speaker {name!r} of {self.name}"
        return with_settings(resolve(named[name], what), what, settings)

    def picture(self, state: Any) -> np.ndarray | None:
        """The dialogue as an (H, W, 3) uint8 image, or None to draw its transcript."""
        return None

    def release(self) -> None:  # noqa: B027
        """Give back what is held open for dialogues that nobody holds any more: sessions."""

    def styled(self, utterance: Utterance) -> Sequence[tuple[str, str]]:
        """The text of an utterance in pieces that add up to it, each with a style of rich's."""
        return [(utterance.text, "")]

    def words(self) -> Sequence[str]:
        """The words that utterances are made of, for a word tokenizer."""
        return ()

    def options_of_rows(
        self, options: Mapping[str, Any], count: int
    ) -> Sequence[Mapping[str, Any]]:
        """Options by which `count` rows of a batch begin: `count` of them, or one for all rows."""
        return [options]

    def check_options(self, options: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """The options given to `reset`, all of them known.

        Raises:
            ValueError: they are no mapping, or one of them is unknown.
        """
        if options is not None and not isinstance(options, Mapping):
            raise ValueError(
                f"options of {self.name}: expected a mapping of names to values; got {options!r}."
            )
        for name in options or {}:
            if name not in self.options:
                raise unknown("option", name, self.options, f"reset of {self.name}")
        return options or {}
