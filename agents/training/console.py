"""What a run says of itself: what it is before it learns, how far it is, what came of it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from agents.training.curves import Curve
from agents.training.dialogues import Dialogues
from agents.training.folder import MODEL, write_record
from agents.training.prepare import Session
from dialgym.experiments import Result, evaluate
from dialgym.progress import Progress, spell_seconds
from dialgym.registry import entries
from dialgym.versions import command_line, versions

Facts = dict[str, str]
SHOWN = ("mean_return", "success", "loss")
"""What of the last row of the curve stands beside the bar."""


def header(session: Session) -> Facts:
    """What a run is about, by name, in the order in which it is said."""
    plan, model = session.plan, session.model
    counted = f"{plan.budget.count:,} dialogues" if plan.budget else f"{plan.timesteps:,} timesteps"
    played = f", {session.env.num_envs} dialogues at a time" if plan.plays else ""
    workers = f", {plan.workers} worker processes" if plan.workers else ""
    several = f", {session.processes.count} processes" if session.processes.count > 1 else ""
    facts = {
        "id": plan.entry.label,
        "settings": assignments(plan.env_kwargs),
        "algorithm": f"{plan.algorithm.name} ({type(model).__name__})",
        "policy": f"{type(model.policy).__name__}, {parameters(model):,} parameters",
        "device": f"{model.device}{workers}{several}",
        "learns": f"{counted}{played}, seed {plan.seed}",
        "data": _data(session),
        "begins with": plan.init_from or "",
        "folder": str(plan.directory),
    }
    if session.saved is not None:
        facts["goes on"] = f"from {model.num_timesteps:,} timesteps"
    return {name: text for name, text in facts.items() if text}


def _data(session: Session) -> str:
    plan = session.plan
    if plan.dataset is None:
        return ""
    return f"{len(plan.dataset):,} stored dialogues, {', '.join(plan.data or ())}"


def parameters(model: Any) -> int:
    """How many numbers a model's policy learns, or keeps."""
    return sum(parameter.numel() for parameter in model.policy.parameters())


def assignments(settings: Mapping[str, Any]) -> str:
    """``words=7, hard_mode=True``."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def played(result: Result) -> str:
    """The return of a result, with its interval, and what it compares with."""
    (env_id,) = result.by_id
    part, row = result[env_id], entries().get(env_id)
    low, high = part.interval
    text = f"{part.mean_return:.2f} [{low:.2f}, {high:.2f}], success {100 * part.success:.0f} %"
    if row and part.scores is not None:
        known = row.row.references(result.stand_ins.get(env_id))
        text += f"; random {known['random']:.2f}, {known['expert_policy']} {known['expert']:.2f}"
    return f"{text} ({part.returns.size} dialogues)"


def scoring_command(session: Session) -> str:
    """The command that scores the run's model, which knows where it was trained."""
    plan = session.plan
    words = ["dialgym", "evaluate", str(plan.directory)]
    if plan.entry.id not in entries():  # nobody imports what a file names, but for who says it
        words.append(plan.entry.id)
        words += [part for k, v in plan.env_kwargs.items() for part in ("--set", f"{k}={v}")]
    return shlex.join(words)


class RunReport:
    """Says what a run is about when it begins, and what came of it; writes both to `run.json`.

    Args:
        session: of the run.
        aloud: print it, too.
    """

    def __init__(self, session: Session, aloud: bool) -> None:
        self.session, self.aloud, self.started = session, aloud, time.monotonic()
        self.record: dict[str, Any] = {}

    def begin(self, resume: bool) -> None:
        """Say what the run is about; `resume` says whether it was to go on."""
        session, plan = self.session, self.session.plan
        self.record = {
            "algorithm": plan.algorithm.name,
            "id": plan.entry.id,
            "settings": dict(plan.env_kwargs),
            "stand_in": plan.entry.stand_in,
            "seed": plan.seed,
            "timesteps": plan.timesteps if plan.budget is None else None,
            "dialogues": plan.budget.count if plan.budget else None,
            "data": plan.data,
            "policy": type(session.model.policy).__name__,
            "parameters": parameters(session.model),
            "device": str(session.model.device),
            "hyperparameters": plan.settings,
            "command": command_line(),
            "versions": versions(),
            "result": None,
        }
        write_record(plan.directory, self.record)
        if resume and session.saved is None:
            self._say(f"No checkpoint in {plan.directory} to resume: the run begins.")
        self._tell(header(session))

    def end(self, episodes: int) -> None:
        """Let the model play so many dialogues, and say what came of the run."""
        plan, model = self.session.plan, self.session.model
        seconds = time.monotonic() - self.started
        facts = {"trained": f"{model.num_timesteps:,} timesteps in {spell_seconds(seconds)}"}
        self.record |= {"seconds": round(seconds, 2), "learned": model.num_timesteps}
        if episodes and self.session.processes.count == 1:
            try:
                result = evaluate(model, plan.entry, episodes, (0,), plan.env_kwargs)
            except ValueError as error:  # of a policy that plays another view, say
                facts["return"] = f"not played: {error}"
            else:
                facts["return"] = played(result)
                self.record["result"] = result.as_dict()
        write_record(plan.directory, self.record)
        facts["model"] = str(plan.directory / MODEL)
        facts["score it"] = scoring_command(self.session)
        trust = [] if plan.entry.id in entries() else ["--trust"]
        facts["look at it"] = shlex.join(["dialgym", "report", str(plan.directory), *trust])
        self._tell(facts)

    def _tell(self, facts: Facts) -> None:
        width = max(map(len, facts))
        for name, text in facts.items():
            self._say(f"{name:<{width}}  {text}")
        self._say("")

    def _say(self, line: str) -> None:
        if self.aloud:
            print(line, flush=True)


class TrainingProgress(BaseCallback):
    """Shows how far a run is: a bar on a terminal, elsewhere a line now and then.

    Args:
        shown: what shows it.
        curve: of the run, whose last row stands beside it.
        dialogues: where the run is measured in dialogues.
    """

    def __init__(self, shown: Progress, curve: Curve | None, dialogues: Dialogues | None) -> None:
        super().__init__()
        self.shown, self.curve, self.dialogues = shown, curve, dialogues

    def _on_step(self) -> bool:
        done = self.dialogues.ended if self.dialogues else self.num_timesteps
        self.shown.reach(done, self._note())
        return True

    def _on_training_end(self) -> None:
        self.shown.finish()

    def _note(self) -> str:
        row = self.curve.rows[-1] if self.curve and self.curve.rows else {}
        values = [(name, row[name]) for name in SHOWN if row.get(name, "") != ""]
        return ", ".join(f"{name.replace('_', ' ')} {float(v):.3g}" for name, v in values)


@contextmanager
def training_progress(
    session: Session, curve: Curve | None, dialogues: Dialogues | None
) -> Iterator[BaseCallback]:
    """A callback that shows how far the run is; an interrupted run's bar stays where it is."""
    plan = session.plan
    total, unit = (plan.budget.count, "dialogues") if plan.budget else (plan.timesteps, "timesteps")
    with Progress(plan.algorithm.name, total, unit, keep=True) as shown:
        yield TrainingProgress(shown, curve, dialogues)
