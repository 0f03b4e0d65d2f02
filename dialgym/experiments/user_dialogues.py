"""Dialogues of a simulated user with policies, kept from the user's side, or as they ended."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from dialgym.errors import whole_number
from dialgym.experiments.evaluate import evaluate
from dialgym.experiments.result import Result
from dialgym.experiments.understanding import understood_lines
from dialgym.experiments.user_faults import AuditedDialogue
from dialgym.registry import Environment, RegistryEntry, entry_of
from dialgym.rollouts import Policy, Report, episode_seed, make_dialogue
from dialgym.simulators import Speaker
from dialgym.simulators.base import Generators, ReplyError, waits
from dialgym.tasks import Task
from dialgym.views.speakers import other_party

RANDOM = "random"
"""Policy that plays beside the task's first one where none is named."""
LEAST = 2
"""Fewest goals."""


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


class Goals(NamedTuple):
    """Goals of an environment, by which policies play, so that users or judges can be compared.

    Attributes:
        entry, settings: the environment.
        task: its rules.
        learner: the party of the policies.
        seed, episodes: by which the dialogues begin.
        trust: policies may be pickles or code; see `EvaluateOptions`.
        report: called with the number of dialogues that have just ended.
    """

    entry: RegistryEntry
    settings: Mapping[str, Any]
    task: Task
    learner: str
    seed: int
    episodes: int
    trust: bool
    report: Report

    @classmethod
    def of(
        cls,
        where: str,
        env: Environment,
        env_kwargs: Mapping[str, Any] | None,
        seed: int,
        episodes: int,
        trust: bool = False,
        report: Report = lambda ended: None,
    ) -> Self:
        """Goals of an environment that is made with `env_kwargs`; `where` begins errors.

        Raises:
            ValueError: an argument is impossible.
        """
        whole_number("episodes", episodes, where, LEAST)
        whole_number("seed", seed, where, 0)
        entry, settings = entry_of(env), dict(env_kwargs or {})
        dialogue = make_dialogue(entry, settings)
        task, learner = dialogue.task, dialogue.learner
        return cls(entry, settings, task, learner, seed, episodes, trust, report)

    @property
    def user(self) -> str:
        """The other party."""
        return other_party(self.task, self.learner)

    def policies(self, given: Sequence[Policy] | None, where: str) -> Sequence[Policy]:
        """The policies `given`; by default the first scripted one that is not random, and random.

        Raises:
            ValueError: none is given.
        """
        if given is None:
            others = [name for name in self.task.speakers.get(self.learner, {}) if name != RANDOM]
            return [*others[:1], RANDOM]
        if not given:
            raise ValueError(f"{where}: expected at least one policy; got none.")
        return given

    def ended(self, policy: Policy) -> EndedDialogues:
        """Play the dialogues, and keep how they ended."""
        result = self._evaluate(policy, states=True)
        part = result[self.entry.id]
        states = [state for batch in part.dialogues for state in batch.states or ()]
        return EndedDialogues(result.policy, states, part.solved[0], part.returns[0])

    def audited(self, policy: Policy, user: Speaker) -> list[AuditedDialogue]:
        """Play the dialogues with a user, and keep them from its side, in the order of episodes.

        One in which the user was never asked has no line.
        """
        overheard = AuditedUser(user)
        result = self._evaluate(policy, simulator=overheard)
        name, solved = result.policy, result[self.entry.id].solved[0].tolist()
        dialogues = []
        for episode, success in enumerate(solved):
            state = overheard.states.get(episode_seed(self.seed, episode))
            dialogues.append(self._dialogue(name, episode, state, success))
        return dialogues

    def _evaluate(self, policy: Policy, states: bool = False, **settings: Any) -> Result:
        return evaluate(
            policy,
            self.entry,
            self.episodes,
            [self.seed],
            {**self.settings, **settings},
            trust=self.trust,
            report=self.report,
            states=states,
        )

    def _dialogue(self, policy: str, episode: int, state: Any, success: bool) -> AuditedDialogue:
        job, party = (self.seed, episode), self.user
        if state is None:
            return AuditedDialogue(policy, job, party, (), (), (), None, success)
        lines, count = self.task.transcript(state, party), self.task.notes(state, party)
        talk, said = self.task.findings(state).talk, lines[count:]
        understood = understood_lines(self.task, state, party, talk)
        return AuditedDialogue(policy, job, party, lines[:count], said, understood, talk, success)
