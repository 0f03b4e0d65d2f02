"""Dialogues of a simulated user with policies, kept from the user's side, or as they ended."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dialgym.experiments.evaluate import evaluate
from dialgym.experiments.understanding import understood_lines
from dialgym.experiments.user_faults import AuditedDialogue
from dialgym.registry import RegistryEntry
from dialgym.rollouts import Policy, Report, episode_seed
from dialgym.simulators import Speaker
from dialgym.simulators.base import Generators, ReplyError, waits
from dialgym.tasks import Task


class AuditedUser:
    """A `BatchSpeaker` that says what another says, and keeps the dialogues that it is asked in.

    Args:
        speaker: who is asked.

    Attributes:
        states: the dialogues, by the seeds of their generators. They change as they go on, and
            once they are over hold all that was said.
    """

    def __init__(self, speaker: Speaker) -> None:
        self.speaker, self.waits = speaker, waits(speaker)
        self.states: dict[int, Any] = {}

    def reply(self, task: Task, state: Any, rng: np.random.Generator) -> str:
        """The speaker's own reply."""
        self._keep(state, rng)
        return self.speaker.reply(task, state, rng)

    def reply_many(self, task: Task, states: Sequence[Any], rngs: Generators) -> Sequence[str]:
        """All replies; a `ReplyError` of the first that failed where they are asked one by one."""
        for state, rng in zip(states, rngs):
            self._keep(state, rng)
        together = getattr(self.speaker, "reply_many", None)
        if together is not None:
            texts: Sequence[str] = together(task, states, rngs)
            return texts
        return [self._ask(place, task, *each) for place, each in enumerate(zip(states, rngs))]

    def _ask(self, place: int, task: Task, state: Any, rng: np.random.Generator) -> str:
        try:
            return self.speaker.reply(task, state, rng)
        except Exception as error:
            raise ReplyError(place, error) from error

    def _keep(self, state: Any, rng: np.random.Generator) -> None:
        # rows that only fill up a batch repeat the seed of its last dialogue, behind it
        self.states.setdefault(rng.bit_generator.seed_seq.entropy, state)  # type: ignore[attr-defined]


class Opponents(NamedTuple):
    """Dialogues to play: an environment, and the party that users play in it.

    Attributes:
        entry, settings: the environment.
        task: its rules.
        party: of the user.
        seed, episodes: by which the dialogues begin.
        trust: policies may be pickles or code; see `EvaluateOptions`.
        report: called with the number of dialogues that have just ended.
    """

    entry: RegistryEntry
    settings: Mapping[str, Any]
    task: Task
    party: str
    seed: int
    episodes: int
    trust: bool = False
    report: Report = lambda ended: None

    def play(self, policy: Policy, user: Speaker) -> list[AuditedDialogue]:
        """Play the dialogues that `evaluate` plays with this policy and this user.

        Returns:
            In the order of episodes; one in which the user was never asked has no line.
        """
        overheard = AuditedUser(user)
        result = evaluate(
            policy,
            self.entry,
            self.episodes,
            [self.seed],
            {**self.settings, "simulator": overheard},
            trust=self.trust,
            report=self.report,
        )
        name, solved = result.policy, result[self.entry.id].solved[0].tolist()
        dialogues = []
        for episode, success in enumerate(solved):
            state = overheard.states.get(episode_seed(self.seed, episode))
            dialogues.append(self._dialogue(name, episode, state, success))
        return dialogues

    def _dialogue(self, policy: str, episode: int, state: Any, success: bool) -> AuditedDialogue:
        job, party = (self.seed, episode), self.party
        if state is None:
            return AuditedDialogue(policy, job, party, (), (), (), None, success)
        lines, count = self.task.transcript(state, party), self.task.notes(state, party)
        talk, said = self.task.findings(state).talk, lines[count:]
        understood = understood_lines(self.task, state, party, talk)
        return AuditedDialogue(policy, job, party, lines[:count], said, understood, talk, success)


class EndedDialogues(NamedTuple):
    """E dialogues of a policy as they ended.

    Attributes:
        policy: its name.
        states: (E,) of the task.
        success: (E,) bool.
        returns: (E,) float64.
    """

    policy: str
    states: Sequence[Any]
    success: np.ndarray
    returns: np.ndarray


def ended_dialogues(
    policy: Policy,
    entry: RegistryEntry,
    settings: Mapping[str, Any],
    seed: int,
    episodes: int,
    trust: bool = False,
    report: Report = lambda ended: None,
) -> EndedDialogues:
    """Play the dialogues that `evaluate` plays with a policy, and keep how they ended.

    Args:
        policy: as for `evaluate`.
        entry, settings: the environment.
        seed, episodes: by which the dialogues begin.
        trust: see `EvaluateOptions`.
        report: called with the number of dialogues that have just ended.
    """
    result = evaluate(
        policy, entry, episodes, [seed], settings, trust=trust, report=report, states=True
    )
    part = result[entry.id]
    states = [state for batch in part.dialogues for state in batch.states or ()]
    return EndedDialogues(result.policy, states, part.solved[0], part.returns[0])
