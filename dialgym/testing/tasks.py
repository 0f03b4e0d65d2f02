"""A check of a task against its declared facts, by random dialogues."""

import json
import math
import pickle
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from dialgym.debug import enforced
from dialgym.io.typed_json import from_json, to_json
from dialgym.language import Utterance
from dialgym.language.text import UNKNOWN
from dialgym.tasks import Hidden, Outcome, Task
from dialgym.tasks.return_checker import rounding_of
from dialgym.testing.act_checks import check_acts
from dialgym.testing.brief_checks import check_brief, check_leaks, check_verbs
from dialgym.testing.scripts import random_utterance, require
from dialgym.views.saved import state_type

SECRETS = 50
"""Secrets of a list that are tried."""


def check_task(task: Task, episodes: int = 50, seed: int = 0) -> None:
    """Play random dialogues, both sides at random, and hold the task to its contract.

    Checked: transcripts are append-only and begin a turn with the speaker's own words; private
    utterances stay private; states copy, pickle, and come back from a file by their type hints, as
    those of a resumed training do; the same generator gives the same dialogue;
    turn limit, lengths, charset, number of utterances, returns and names of reward components keep
    to `task.facts`, and rewards of language to their bounds; components add up to the reward;
    features have the form that is declared; anchors are the same in a copy; a party's own copy of
    the state tells it what its views do, and not what `facts.hidden` names (`Task.observed`); acts
    have the form that is declared, and choosing one changes nothing; each party has a brief, the
    same all dialogue long, that tells nothing of what it is not told; unknown options are refused;
    `Task.secrets` are options that differ and begin a dialogue.

    Raises:
        AssertionError: a promise is broken; the message says which, where, and what came.
    """
    with enforced():
        for episode in range(episodes):
            _Episode(task, seed + episode).play()
            check_leaks(task, seed + episode)
    check_verbs(task)
    _check_options(task)
    _check_secrets(task)


class _Episode:
    """One random dialogue under scrutiny."""

    def __init__(self, task: Task, seed: int) -> None:
        self.task, self.seed, self.type = task, seed, state_type(task)
        self.rng = np.random.default_rng([seed, 0])  # the rules'
        self.words = np.random.default_rng([seed, 1])  # the speakers'
        self.choices = np.random.default_rng([seed, 2])  # the act policies'
        self.state: Any = task.initial(self.rng, None)
        self.briefs = {p: task.brief(self.state, p) for p in task.parties}
        self.seen = {p: list(task.transcript(self.state, p)) for p in task.parties}
        self.returns = dict.fromkeys(task.parties, 0.0)
        self.turns: Counter[str] = Counter()
        for party, lines in self.seen.items():
            self._check_features(party)
            for line in lines:
                self._check_line(party, line)

    def play(self) -> None:
        most = sum(map(sum, (c.values() for c in self.task.facts.heard.values())))
        for _ in range(most + 1):
            outcome = self._turn()
            if outcome.terminated or outcome.truncated:
                return self._check_end(outcome)
        return self._fail(f"the dialogue did not end within {most} utterances of both parties")

    def _turn(self) -> Outcome:
        task = self.task
        speaker = task.speaker(self.state)
        self._require(speaker in task.parties, f"speaker() gave {speaker!r}, which is no party")
        check_acts(task, self.state, self.choices, self.seed)
        for party in task.parties:
            check_observed(task, self.state, party, self.seed)
            check_brief(task, self.state, party, self.briefs[party], self.seed)
        constraint = task.constraint(self.state, speaker)
        text = random_utterance(task, speaker, constraint, self.words)
        outcome = self._speak_twice(text)
        self.turns[speaker] += 1
        for party, reward in outcome.rewards.items():
            self.returns[party] += reward
            self._check_components(party, outcome)
        for party in task.parties:
            self._check_transcript(party, speaker, text)
            self._check_features(party)
        over = outcome.terminated or outcome.truncated
        self._require(
            not over or speaker in task.facts.may_end,
            f"an utterance of {speaker} ended the dialogue; facts.may_end is {task.facts.may_end}",
        )
        return outcome

    def _check_components(self, party: str, outcome: Outcome) -> None:
        names, named = self.task.facts.components.get(party, ()), outcome.components
        if not (names or named):
            return
        self._require(
            not named or party in named,
            f"the components of an outcome are those of {list(named)}; none are given for {party}",
        )
        parts = outcome.parts(party)
        self._require(
            set(parts) <= set(names),
            f"the reward of {party} has the components {list(parts)}; facts.components allows "
            f"{names}",
        )
        self._require(
            math.isclose(sum(parts.values()), outcome.rewards[party], abs_tol=1e-9),
            f"the components {parts} of {party} do not add up to its reward, "
            f"{outcome.rewards[party]}",
        )

    def _check_features(self, party: str) -> None:
        form, features = self.task.facts.features.get(party), self.task.features(self.state, party)
        again = self.task.features(self.state, party)
        self._require(
            (form is None) == (features is None),
            f"features of {party}: expected {form} by facts.features; got {features!r}",
        )
        if form is None or features is None or again is None:
            return
        right = features.shape == form.shape and features.dtype == form.dtype
        self._require(
            right and (form.low <= features).all() and (features <= form.high).all(),
            f"features of {party}: expected {form}; got {features.dtype} {features.shape} from "
            f"{features.min()} to {features.max()}",
        )
        self._require(
            not np.shares_memory(features, again),
            f"features of {party}: two calls gave one array; give a copy",
        )

    def _check_anchors(self) -> None:
        copy = pickle.loads(pickle.dumps(self.state))
        for party in self.task.parties:
            first, other = (self.task.anchor(state, party) for state in (self.state, copy))
            self._require(
                first == other, f"the anchor of {party} is {first}, and {other} in a pickled copy"
            )

    def _speak_twice(self, text: str) -> Outcome:
        """Speak, in the state as a file has it, having first done the same on a copy."""
        before, copy = self._snapshot(self.state), self.state.copy()
        saved = self._from_file(copy)
        first = self.task.speak(copy, text, deepcopy(self.rng))
        self._require(
            self._snapshot(self.state) == before, "speaking on state.copy() changed the state"
        )
        self.state = saved
        outcome = self.task.speak(self.state, text, self.rng)
        self._require(
            outcome == first and self._snapshot(self.state) == self._snapshot(copy),
            f"the same state, text ({text!r}) and generator gave two outcomes: "
            f"{first} and {outcome}",
        )
        return outcome

    def _from_file(self, state: Any) -> Any:
        """The state as a checkpoint would have it."""
        try:
            text = json.dumps(to_json(state, self.type), allow_nan=False)
            return from_json(json.loads(text), self.type)
        except ValueError as error:
            self._fail(f"the state does not come back from a file: {error}")
            raise

    def _snapshot(self, state: Any) -> list[list[Utterance]]:
        return [list(self.task.transcript(state, party)) for party in self.task.parties]

    def _check_transcript(self, party: str, speaker: str, text: str) -> None:
        lines: Sequence[Utterance] = self.task.transcript(self.state, party)
        known = self.seen[party]
        self._require(
            list(lines[: len(known)]) == known,
            f"the transcript of {party} is not append-only: {known} became {list(lines)}",
        )
        fresh = list(lines[len(known) :])
        self._require(
            party != speaker or (fresh and fresh[0][:2] == (speaker, text)),
            f"after {speaker} said {text!r} its transcript goes on with {fresh[:1]}",
        )
        self._require(
            all(line.speaker == party for line in fresh if line.private),
            f"{party} sees a private utterance of the other party: {fresh}",
        )
        self._check_counts(party, lines)
        for line in fresh:
            self._check_line(party, line)
        self.seen[party] = list(lines)

    def _check_counts(self, party: str, lines: Sequence[Utterance]) -> None:
        facts = self.task.facts
        counts = Counter(line.speaker for line in lines)
        for speaker, count in counts.items():
            most = facts.heard[party].get(speaker, 0)
            self._require(
                count <= most,
                f"{party} saw {count} utterances of {speaker}; facts.heard allows {most}",
            )

    def _check_line(self, party: str, line: Utterance) -> None:
        facts = self.task.facts
        self._require(
            len(line.text) <= facts.limit(line.speaker),
            f"{line!r} is longer than facts.longest[{line.speaker!r}] allows",
        )
        self._require(
            facts.words is None or len(line.text.split()) <= facts.word_limit(party, line.speaker),
            f"{line!r} has more words than facts.words[{party!r}] allows",
        )
        self._require(
            set(line.text) <= {*facts.charset, UNKNOWN},
            f"{line!r} has characters outside facts.charset",
        )

    def _check_end(self, outcome: Outcome) -> None:
        self._check_anchors()
        facts, (system, _) = self.task.facts, self.task.parties
        self._require(
            self.turns[system] <= facts.turn_limit,
            f"{self.turns[system]} utterances of {system}; facts.turn_limit is {facts.turn_limit}",
        )
        for party, earned in self.returns.items():
            low, high = facts.returns[party]
            slack = rounding_of(facts.returns[party])
            self._require(
                low - slack <= earned <= high + slack,
                f"return {earned} of {party}; facts.returns allows {low} to {high}",
            )
        self._require(outcome.success is not None, "the last outcome leaves success None")
        metrics = self.task.metrics(self.state)
        self._require(
            set(metrics) == set(facts.metrics) and all(map(math.isfinite, metrics.values())),
            f"metrics() gave {dict(metrics)}; facts.metrics names {facts.metrics}",
        )

    def _require(self, condition: object, message: str) -> None:
        require(condition, self.task, f"{message} (seed {self.seed})")

    def _fail(self, message: str) -> None:
        self._require(False, message)


def check_observed(task: Task, state: Any, party: str, seed: int) -> None:
    """Hold `task.observed(state, party)` to its contract in one state of a dialogue.

    Raises:
        AssertionError: it tells the party less than its views do, or hides nothing of what
            `facts.hidden` names; or it is no copy.
    """
    where = f"observed() of {party} (seed {seed})"
    before = pickle.dumps(state)
    seen = task.observed(state, party)
    told, known = list(task.transcript(seen, party)), list(task.transcript(state, party))
    require(told == known, task, f"{where}: its transcript is {told}; expected {known}")
    if party == task.speaker(state):
        task.constraint(seen, party)
        _check_acts(task, state, seen, party, where)
    named = task.facts.hidden.get(party, ())
    require(
        not named or hides(seen),
        task,
        f"{where} hides nothing, and facts.hidden names {named}. Name the attributes of the state "
        "in Task.hidden_fields, or hide them in observed().",
    )
    require(pickle.dumps(state) == before, task, f"{where}: making or reading it changed the state")


def _check_acts(task: Task, state: Any, seen: Any, party: str, where: str) -> None:
    """The party's observation and mask are those of the state."""
    acts = task.acts.get(party)
    if acts is not None:
        same = np.array_equal(acts.observe(seen), acts.observe(state))
        require(same, task, f"{where}: observe() of it gives something else")
        same = np.array_equal(acts.mask(seen), acts.mask(state))
        require(same, task, f"{where}: mask() of it gives something else")


def hides(value: Any, depth: int = 3) -> bool:
    """Return True if anything in a state is hidden, or in its parts down to a depth."""
    if isinstance(value, Hidden):
        return True
    return depth > 0 and any(hides(part, depth - 1) for part in _parts(value))


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    if is_dataclass(value):
        return [getattr(value, field.name) for field in fields(value)]
    return list(getattr(value, "__dict__", {}).values())


def _check_options(task: Task) -> None:
    name = "no-such-option"
    try:
        task.initial(np.random.default_rng(0), {name: 1})
    except ValueError as error:
        require(name in str(error), task, f"the error of an unknown option hides it: {error}")
    else:
        require(False, task, "initial() accepted an unknown option; use self.check_options")


def _check_secrets(task: Task) -> None:
    secrets = task.secrets()
    texts = {json.dumps(options, sort_keys=True, default=repr) for options in secrets}
    require(len(texts) == len(secrets), task, "secrets() has some options several times")
    for options in secrets[:: max(1, len(secrets) // SECRETS)]:
        try:
            task.initial(np.random.default_rng(0), options)
        except ValueError as error:
            require(False, task, f"secrets() has {options!r}, which initial() refuses: {error}")
