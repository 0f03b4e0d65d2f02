"""Dialogues of a person in the browser, and their storing as a data set."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from inspect import getdoc
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dialgym.datasets.schema import Origin, Recorder, check_json, played_settings, write_table
from dialgym.language import Letters, WordTrie, allows
from dialgym.language.text import as_typed
from dialgym.registry import Environment, RegistryEntry, entry_of, make_task
from dialgym.rollouts.episodes import policy_rng
from dialgym.rollouts.games import OpenDialogue, as_played
from dialgym.rollouts.player import make_dialogue
from dialgym.simulators import Speaker, shown_to
from dialgym.simulators.human import unclear
from dialgym.tasks import Task
from dialgym.viewer.lines import pieces, rounded, turn
from dialgym.views.speakers import other_party

PERSON = "person"
"""The policy in stored dialogues of a person."""
MOST_WORDS = 1000  # of a list of all that may be said


@dataclass(frozen=True)
class ChatChoice:
    """A person's choice of a dialogue.

    Attributes:
        env: an id, or its entry.
        party: that the person plays.
        against: who plays the other, as `simulator=` of an env takes it; None for the default,
            which of the system is the expert, if there is one.
        seed: of the dialogue.
        options: of reset.
        settings: of the environment.
    """

    env: Environment
    party: str
    against: Any = None
    seed: int = 0
    options: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] | None = None


class NotSaid(NamedTuple):
    """A text that was not said, and what may be said instead, as far as the task can tell."""

    text: str
    doubt: str


class ChatSession:
    """A dialogue in which a person plays a party.

    Raises:
        ValueError: there is no such id, party, simulator, option or setting.
    """

    def __init__(self, choice: ChatChoice) -> None:
        self.choice, self.entry = choice, speaking(entry_of(choice.env))
        task = make_task(self.entry, {})
        kwargs = {**task.for_people, **(choice.settings or {}), "learner": choice.party}
        against = choice.against or kwargs.get("simulator") or self._expert_against(task)
        dialogue = make_dialogue(self.entry, {**kwargs, "simulator": against})
        self.settings = {**kwargs, "simulator": against} if against else kwargs
        self.game = OpenDialogue(dialogue, (choice.seed, 0), choice.options)
        self.parts: list[dict[str, float]] = []  # components of what was said
        self.before: list[tuple[OpenDialogue, list[dict[str, float]], np.random.Generator]] = []
        self.rng = policy_rng(choice.seed, 0)

    @property
    def task(self) -> Task:
        """The rules."""
        return self.game.dialogue.task

    def say(self, text: str, sure: bool = False) -> NotSaid | None:
        """Say a text; where the rules do not foresee it nothing is said, and the reason returned.

        Args:
            text: what the person wrote.
            sure: it is to be said whatever the rules foresee.

        Raises:
            ValueError: the dialogue is over.
        """
        self._check_open()
        facts, state = self.task.facts, self.game.dialogue.state
        text = as_typed(text, facts.charset)
        foreseen = allows(self.task.constraint(state, self.choice.party), text)
        doubt = unclear(self.task, state, text) if foreseen else ""
        if not sure and doubt is not None:
            return NotSaid(text, doubt)
        self._keep()
        self.game.say(text)
        self._note()
        return None

    def choose(self, act: int) -> None:
        """Say a dialogue act, by its number.

        Raises:
            ValueError: the dialogue is over, or it cannot be chosen now.
        """
        self._check_open()
        acts = self.task.acts.get(self.choice.party)
        mask: Any = [] if acts is None else acts.mask(self.game.dialogue.state)
        if not 0 <= act < len(mask) or not mask[act]:
            raise ValueError(f"act {act} cannot be chosen now.")
        self._keep()
        self.game.acts = acts
        self.game.choose(_Choice(act), self.rng)
        self.game.acts = None
        self._note()

    def undo(self) -> None:
        """Take back the last utterance.

        Raises:
            ValueError: nothing has been said.
        """
        if not self.before:
            raise ValueError("nothing has been said that could be taken back.")
        self.game, self.parts, self.rng = self.before.pop()

    def hint(self) -> str:
        """Reply of the expert.

        Raises:
            ValueError: the dialogue is over, or there is nobody to ask.
        """
        self._check_open()
        speakers = self.task.speakers.get(self.choice.party, {})
        wanted = (self._expert_of(self.task), *speakers)
        names = [name for name in wanted if name in speakers and name != "random"]
        if not names:
            raise ValueError(f"the {self.choice.party} of {self.task.name} has nobody to ask.")
        speaker: Speaker = self.task.speaker_named(self.choice.party, names[0])
        state = self.game.dialogue.state.copy()
        return speaker.reply(self.task, shown_to(speaker, self.task, state), deepcopy(self.rng))

    def picture(self) -> np.ndarray | None:
        """(H, W, 3) uint8: of a dialogue that is over, or for who is told all that is in it."""
        hidden = self.task.facts.hidden.get(self.choice.party)
        if hidden and not self.game.over:
            return None
        return self.task.picture(self.game.dialogue.state)

    def spoken(self) -> list[str]:
        """All that was said, without what is private."""
        lines = self.task.transcript(self.game.dialogue.state, self.choice.party)
        return [line.text for line in lines if not line.private]

    def shown(self) -> dict[str, Any]:
        """The dialogue as it stands."""
        game, task, party = self.game, self.task, self.choice.party
        end, dialogue = game.exchange, game.dialogue
        return {
            "env": self.entry.id,
            "task": task.name,
            "learner": party,
            "other": other_party(task, party),
            "seed": self.choice.seed,
            "turns": self._turns(),
            "over": end.over,
            "success": bool(end.success) if end.over else None,
            "return": game.episode_return,
            "turn": dialogue.turn,
            "left": max(0, task.facts.turn_limit - dialogue.turn),
            "hidden": self._hidden() if end.over else [],
            "picture": self.picture() is not None,
            "undo": bool(self.before),
            **({} if end.over else self._choices()),
        }

    def _turns(self) -> list[dict[str, Any]]:
        game, task = self.game, self.task
        lines = task.transcript(game.dialogue.state, self.choice.party)
        own = {position: number for number, position in enumerate(game.positions)}
        turns = []
        for position, line in enumerate(lines):
            number = own.get(position)
            if number is None:
                turns.append(turn(task, line, False))
                continue
            parts = self.parts[number]
            turns.append(turn(task, line, True, game.rewards[number], components=parts))
        return turns

    def _hidden(self) -> list[dict[str, Any]]:
        """Facts that the other party alone knew."""
        other = other_party(self.task, self.choice.party)
        lines = self.task.transcript(self.game.dialogue.state, other)
        return [
            {"party": line.speaker, "text": line.text, "pieces": pieces(self.task, line)}
            for line in lines
            if line.private
        ]

    def _choices(self) -> dict[str, Any]:
        """Utterances that are possible now, if they can be listed."""
        state, party = self.game.dialogue.state, self.choice.party
        constraint = self.task.constraint(state, party)
        choices: dict[str, Any] = {"longest": self.task.facts.longest[party]}
        if isinstance(constraint, WordTrie) and len(constraint.words) <= MOST_WORDS:
            choices["words"] = list(constraint.words)
        if isinstance(constraint, Letters):
            choices["letters"] = constraint.length
        acts = self.task.acts.get(party)
        if acts is not None and not acts.multiple:
            allowed = acts.mask(state).tolist()
            choices["acts"] = [
                {"number": i, "name": name, "allowed": allowed[i]}
                for i, name in enumerate(acts.names)
            ]
        return choices

    def _expert_against(self, task: Task) -> str | None:
        """The expert for the system, where a person plays the user and there is one."""
        system = task.parties[0]
        expert = self._expert_of(task)
        known = self.choice.party != system and expert in task.speakers.get(system, {})
        return expert if known else None

    def _expert_of(self, task: Task) -> str:
        return task.expert_for_people or self.entry.row.expert_name

    def _keep(self) -> None:
        self.before.append((self.game.copy(), [*self.parts], deepcopy(self.rng)))

    def _note(self) -> None:
        self.parts.append(rounded(self.game.exchange.components))

    def _check_open(self) -> None:
        if self.game.over:
            raise ValueError("the dialogue is over; begin another one, or take the last turn back.")


class _Choice:
    """An act policy that chooses what a person has chosen."""

    def __init__(self, act: int) -> None:
        self.number = act

    def act(self, task: Any, state: Any, rng: np.random.Generator) -> int:
        return self.number


def speaking(entry: RegistryEntry) -> RegistryEntry:
    """The entry in a view in which a person can speak."""
    return entry if entry.kind.of_acts else entry.in_view("utterance")


def described(entry: RegistryEntry) -> dict[str, Any]:
    """Facts of an environment that the page shows before a dialogue begins."""
    task = make_task(entry, {})
    about = (getdoc(type(task)) or "").partition("\n\nArgs:")[0]
    return {
        "env": entry.id,
        "task": task.name,
        "about": about,
        "description": entry.row.description,
        "parties": list(task.parties),
        "speakers": {party: list(task.speakers.get(party, {})) for party in task.parties},
        "options": list(task.options),
        "turns": task.facts.turn_limit,
        "stand_in": task.stand_in,
    }


def keep_game(session: ChatSession, folder: Path, name: str) -> Path:
    """Write a finished dialogue into a folder, as a file of stored dialogues; return the file.

    Args:
        session: of the dialogue.
        folder: of the data set.
        name: of the dialogue; a second one of that name replaces it.

    Raises:
        ValueError: a setting cannot be stored.
        OSError: the folder cannot be written.
        ImportError: pyarrow is not installed.
    """
    dialogue = session.game.dialogue
    settings = played_settings(session.settings, dialogue)
    check_json(settings, "view")
    recorder = Recorder(Origin(session.entry.id, settings, session.choice.party, PERSON))
    recorder.add(as_played(session.game))
    file = folder / f"{name}.parquet"
    write_table(file, recorder.table())
    return file
