"""Playing one dialogue at a time: games of scripted policies, their branches, scripts, logs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random

from dialgym.rollouts.episode_batch import (
    Decisions,
    EpisodeBatch,
    RecordedTurns,
    Role,
    metric_columns,
)
from dialgym.rollouts.episodes import Job, Report, episode_seed, policy_rng
from dialgym.simulators import Speaker, shown_to
from dialgym.simulators.base import check_text
from dialgym.tasks import ActPolicy, PartyActs
from dialgym.tasks.acts import check_act
from dialgym.tasks.generators import Leg, Logs, Relay, Scripts, Tree
from dialgym.views.dialogue import Dialogue
from dialgym.views.spaces import clean

TOGETHER = 128
"""Episodes that are handed over at once."""


class OpenDialogue:
    """A dialogue under way, its generator, and what the learner's utterances have earned.

    Args:
        dialogue: its rules and its other party; begun again, and used up to the end of the game.
        job: seed and number of the episode.
        options: of reset.
        acts: the learner's, where it chooses acts.
        record: whether its choices are kept.
    """

    def __init__(
        self,
        dialogue: Dialogue,
        job: Job,
        options: Mapping[str, Any] | None = None,
        acts: PartyActs | None = None,
        record: bool = False,
    ) -> None:
        self.dialogue, self.job, self.acts, self.record = dialogue, job, acts, record
        self.options = dict(options or {})
        self.seed = episode_seed(*job)
        self.rng = np_random(self.seed)[0]
        self.role = Role()
        self.positions: list[int] = []  # where in the transcript its utterances stand
        self.rewards: list[float] = []
        self.chosen: list[tuple[np.ndarray, Any, np.ndarray]] = []
        self.last: Any = None  # act that it chose
        self.exchange = dialogue.start(self.rng, options)
        self.episode_return = self.exchange.reward
        self.length = len(self.exchange.heard)

    @property
    def over(self) -> bool:
        """Tell if the dialogue has ended."""
        return self.exchange.over

    def say(self, text: str) -> None:
        """Let the learner speak, without characters that its text view would refuse."""
        dialogue = self.dialogue
        self._say(clean(text, dialogue.task.facts, dialogue.learner))

    def ask(self, policy: Speaker, rng: np.random.Generator) -> None:
        """Let the learner say the reply of a scripted policy, which sees what it may know."""
        task, state = self.dialogue.task, self.dialogue.state
        text = policy.reply(task, shown_to(policy, task, state), rng)
        check_text(text, policy, task)
        self.say(text)

    def _say(self, text: str) -> None:
        self.exchange = self.dialogue.say(text, self.rng)
        self.episode_return += self.exchange.reward
        self.positions.append(self.length)
        self.rewards.append(self.exchange.reward)
        self.length += 1 + len(self.exchange.heard)

    def choose(self, policy: ActPolicy, rng: np.random.Generator) -> None:
        """Let the learner speak by the act that a policy chooses; both draw from `rng`."""
        task, state = self.dialogue.task, self.dialogue.state
        assert self.acts is not None
        action = policy.act(task, shown_to(policy, task, state), rng)
        self._act(check_act(action, self.acts, f"a policy in {task.name}"), rng)

    def _act(self, action: Any, rng: np.random.Generator) -> None:
        assert self.acts is not None
        self.last = action
        if self.record:
            self._note(action)
        self._say(self.acts.say(self.dialogue.state, action, rng))

    def repeat(self, text: str) -> None:
        """Let the learner say what a log has; where acts are kept, the act that comes nearest."""
        if self.acts is not None and self.record:
            self._note(self.acts.read(self.dialogue.state, text))
        self._say(text)

    def _note(self, action: Any) -> None:
        """Record an action with its observation and mask."""
        assert self.acts is not None
        state = self.dialogue.state
        self.chosen.append((self.acts.observe(state), action, self.acts.mask(state)))

    def cut(self) -> None:
        """Truncate the dialogue where it is still open."""
        if not self.over:
            self.exchange = self.exchange._replace(truncated=True)

    def play(self, policy: Any, rng: np.random.Generator) -> "OpenDialogue":
        """Let a scripted policy, with a generator of its own, play to the end."""
        while not self.exchange.over:
            self.turn(policy, rng)
        return self

    def turn(self, policy: Any, rng: np.random.Generator) -> None:
        """Let the learner speak as a scripted policy does, by acts where it chooses acts."""
        if self.acts is None:
            self.ask(policy, rng)
        else:
            self.choose(policy, rng)

    def say_again(self, rng: np.random.Generator) -> bool:
        """Let the learner say what it said last; False where its mask forbids that."""
        if self.acts is None:
            lines = self.dialogue.task.transcript(self.dialogue.state, self.dialogue.learner)
            self.say(lines[self.positions[-1]].text)
        elif self.acts.allows(self.dialogue.state, self.last):
            self._act(self.last, rng)
        else:
            return False
        return True

    def copy(self) -> "OpenDialogue":
        """The same game at the same point, to go on in another way.

        Its generator is in the same state, so that seed and utterances still replay it.
        """
        other = object.__new__(OpenDialogue)
        other.__dict__.update(self.__dict__)
        other.dialogue, other.rng = self.dialogue.copy(), deepcopy(self.rng)
        other.positions, other.rewards = self.positions.copy(), self.rewards.copy()
        return other

    def decisions(self) -> Decisions:
        """The choices, and what they were made by."""
        assert self.acts is not None
        observations, actions, masks = zip(*self.chosen)
        state, dtype = self.dialogue.state, np.int8 if self.acts.multiple else np.int64
        return Decisions(
            np.stack([*observations, self.acts.observe(state)]),
            np.array(actions, dtype),
            np.stack([*masks, self.acts.mask(state)]),
        )


def play_games(
    games_of: Callable[[Job, Mapping[str, Any]], Iterable[OpenDialogue]],
    jobs: Sequence[Job],
    options: Sequence[Mapping[str, Any]],
    record: bool,
    report: Report,
    states: bool = False,
) -> Iterator[EpisodeBatch]:
    """Play episodes one after the other; each is one game, or several.

    Args:
        games_of: plays those of an episode with its options; they then are over.
        jobs: the episodes.
        options: of the reset of each.
        record: whether what was said and chosen is kept.
        report: called as they end.
        states: whether the dialogues are kept as they ended.
    """
    for start in range(0, len(jobs), TOGETHER):
        table = _Table(record, states)
        now = slice(start, start + TOGETHER)
        for job, own in zip(jobs[now], options[now], strict=True):
            for game in games_of(job, own):
                table.add(game)
            report(1)
        yield table.played()


def as_played(game: OpenDialogue) -> EpisodeBatch:
    """One game that is over, with what was said."""
    table = _Table(record=True)
    table.add(game)
    return table.played()


class _Table:
    """Games that are over, as columns; a dialogue may begin again once it has been added."""

    def __init__(self, record: bool, states: bool = False) -> None:
        self.turns = RecordedTurns() if record else None
        self.states: list[Any] | None = [] if states else None
        self.decisions: list[Decisions] = []
        self.rows: list[tuple[Any, ...]] = []
        self.metrics: list[Mapping[str, float]] = []

    def add(self, game: OpenDialogue) -> None:
        dialogue, end = game.dialogue, game.exchange
        self.rows.append(
            (
                *(game.seed, game.job[1], game.role, game.episode_return, dialogue.turn),
                *(game.options, bool(end.success), end.terminated, end.truncated),
            )
        )
        self.metrics.append(dialogue.task.metrics(dialogue.state))
        if self.states is not None:
            self.states.append(dialogue.state)
        if self.turns is not None:
            lines = dialogue.task.transcript(dialogue.state, dialogue.learner)
            self.turns.add(lines, game.positions, game.rewards)
            if game.acts is not None:
                self.decisions.append(game.decisions())

    def played(self) -> EpisodeBatch:
        seeds, episodes, roles, returns, lengths, options, *ends = zip(*self.rows)
        success, terminated, truncated = (np.array(column, bool) for column in ends)
        return EpisodeBatch(
            list(seeds),
            list(episodes),
            np.array(returns, np.float64),
            np.array(lengths, np.int64),
            success,
            terminated,
            truncated,
            roles=roles,
            turns=self.turns,
            decisions=self.decisions or None,
            options=options,
            metrics=metric_columns(self.metrics),
            states=self.states,
        )


def tree_games(
    tree: Tree, dialogue: Dialogue, job: Job, options: Mapping[str, Any] | None
) -> Iterator[OpenDialogue]:
    """A dialogue of the tree's source, then its branches, in order of place."""
    points = _play_source(tree, OpenDialogue(dialogue, job, options), job)
    points[-1].role = Role(tree.kind)
    yield points[-1]
    number = 0
    for branch in tree.branches:
        positions = range(len(points) - 1) if branch.after is None else [branch.after]
        for after in positions:
            if after >= len(points) - 1:  # it had ended by then
                continue
            for _ in range(branch.games):
                number += 1
                game = points[after].copy()
                game.role = Role(branch.kind, 0, after)
                yield game.play(branch.policy, policy_rng(*job, number))


def _play_source(tree: Tree, game: OpenDialogue, job: Job) -> list[OpenDialogue]:
    """The game after each number of the learner's utterances; the last one is over."""
    rng = policy_rng(*job)
    points = []
    while not game.over:
        points.append(game.copy())
        game.ask(tree.source, rng)
    return [*points, game]


def relay_games(
    relay: Relay,
    dialogue: Dialogue,
    job: Job,
    options: Mapping[str, Any] | None,
    acts: PartyActs | None,
    record: bool,
) -> list[OpenDialogue]:
    """A dialogue of one of the kinds, each leg by its policy."""
    rng = policy_rng(*job)
    game = OpenDialogue(dialogue, job, options, acts, record)
    kind = list(relay.kinds)[int(rng.integers(len(relay.kinds)))]
    game.role = Role(kind)
    for leg in relay.kinds[kind]:
        _play_leg(leg, game, rng)
    return [game]


def _play_leg(leg: Leg, game: OpenDialogue, rng: np.random.Generator) -> None:
    end = None if leg.turns is None else len(game.positions) + leg.turns
    while not game.over and len(game.positions) != end:
        again = leg.again and game.positions and rng.random() < leg.again
        if not (again and game.say_again(rng)):
            game.turn(leg.policy, rng)


def script_games(scripts: Scripts, dialogue: Dialogue, job: Job) -> list[OpenDialogue]:
    """A dialogue that was written in advance; if it stops while open, it is truncated."""
    script = scripts.script(dialogue.task, policy_rng(*job))
    game = OpenDialogue(dialogue, job, script.options)
    texts = iter(script.texts)
    while not game.over and (text := next(texts, None)) is not None:
        game.say(text)
    game.cut()
    return [game]


def log_games(
    logs: Logs, dialogue: Dialogue, job: Job, acts: PartyActs | None, record: bool
) -> list[OpenDialogue]:
    """A dialogue of a corpus; if it stops while open, it is truncated.

    Raises:
        ValueError: the corpus has fewer dialogues.
    """
    task, learner, number = dialogue.task, dialogue.learner, job[1]
    if number >= (most := logs.count(task)):
        raise ValueError(
            f"collect: expected at most {most} episodes, the dialogues of the corpus; got more."
        )
    log = logs.log(task, number)
    other = _Repeated([text for party, text in log.turns if party != learner])
    game = OpenDialogue(Dialogue(task, learner, other), job, log.options, acts, record)
    game.role = Role(log.kind)
    own = [text for party, text in log.turns if party == learner]
    for text in own:
        if game.over:
            break
        game.repeat(text)
    game.cut()
    return [game]


class _Repeated:
    """The other party of a log: says its texts, then nothing."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = iter(texts)

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        return next(self.texts, "")


def speaker_games(
    policy: Speaker | ActPolicy,
    dialogue: Dialogue,
    job: Job,
    options: Mapping[str, Any] | None,
    acts: PartyActs | None,
    record: bool,
) -> list[OpenDialogue]:
    """A dialogue of a scripted policy, which chooses among `acts` where they are given."""
    return [OpenDialogue(dialogue, job, options, acts, record).play(policy, policy_rng(*job))]
