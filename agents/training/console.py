"""Console report and `run.json` of a training run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from agents.training.callbacks import Curve, StopAfterDialogues
from agents.training.config import RECORD
from agents.training.plain import as_plain
from agents.training.prepare import data_names
from agents.training.session import MODEL, Session
from dialgym.datasets import Dataset
from dialgym.experiments import Result, evaluate
from dialgym.io.files import write_text
from dialgym.io.model_settings import SPENT, usage_text
from dialgym.progress import Progress, spell_seconds
from dialgym.registry import built_in, entries
from dialgym.versions import command_line, versions

Facts = dict[str, str]
SHOWN = ("mean_return", "success", "loss")
"""Columns of the curve whose last value stands beside the bar."""


def header(session: Session) -> Facts:
    """Facts of a run by name, in the order in which they are printed."""
    plan, config, model = session.plan, session.plan.config, session.model
    counted = "{:,} {}".format(*_length(session))
    played = f", {session.env.num_envs} dialogues at a time" if plan.algorithm.plays else ""
    workers = f", {config.workers} worker processes" if config.workers else ""
    several = f", {session.processes.count} processes" if session.processes.count > 1 else ""
    facts = {
        "id": plan.entry.label,
        "settings": assignments(plan.env_kwargs),
        "algorithm": f"{plan.algorithm.name} ({type(model).__name__})",
        "policy": f"{type(model.policy).__name__}, {parameters(model):,} parameters",
        "device": f"{model.device}{workers}{several}",
        "learns": f"{counted}{played}, seed {config.seed}",
        "data": _data(session),
        "begins with": str(config.init_from or ""),
        "folder": str(plan.folder),
    }
    if session.saved is not None:
        facts["goes on"] = f"from {model.num_timesteps:,} timesteps"
    return {name: text for name, text in facts.items() if text}


def _data(session: Session) -> str:
    plan = session.plan
    if plan.dataset is None:
        return ""
    names = ", ".join(data_names(plan.config.data) or ())
    kind = "stored dialogues" if isinstance(plan.dataset, Dataset) else "new dialogues an epoch"
    return f"{len(plan.dataset):,} {kind}, {names}"


def _length(session: Session) -> tuple[int, str]:
    """Length of a run and its unit."""
    count = session.plan.config.dialogues
    return (count, "dialogues") if count else (session.plan.timesteps, "timesteps")


def parameters(model: Any) -> int:
    """Number of weights of a model's policy."""
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
    words = ["dialgym", "evaluate", str(plan.folder)]
    if plan.entry.id not in built_in():  # nobody imports what a file names, but for who says it
        words.append(str(plan.config.env_id))
        words += [part for k, v in plan.env_kwargs.items() for part in ("--set", f"{k}={v}")]
    return shlex.join([*words, *_trust(session)])


def report_command(session: Session) -> str:
    """The command that writes a page about the run."""
    plan = session.plan
    own = [] if plan.entry.id in built_in() else ["--env", str(plan.config.env_id)]
    return shlex.join(["dialgym", "report", str(plan.folder), *own, *_trust(session)])


def _trust(session: Session) -> list[str]:
    """The option without which the class of an algorithm that is not registered is not loaded."""
    return ["--trust"] if ":" in session.plan.config.algorithm else []


class RunReport:
    """Prints the settings of a run and its results; writes both to `run.json`."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.record: dict[str, Any] = {}

    def begin(self) -> None:
        """Print the settings of the run."""
        session, plan = self.session, self.session.plan
        self.record = {
            "config": plan.config.as_dict(),
            "hyperparameters": as_plain(plan.hyperparameters),
            "env_kwargs": as_plain(plan.env_kwargs),
            "stand_in": plan.entry.stand_in,
            "policy": type(session.model.policy).__name__,
            "parameters": parameters(session.model),
            "device": str(session.model.device),
            "command": command_line(),
            "versions": versions(),
            "result": None,
        }
        self._write()
        if plan.config.resume and session.saved is None:
            self._print(f"No checkpoint in {plan.folder} to resume: the run begins.")
        self._print_facts(header(session))

    def end(self, seconds: float) -> None:
        """Let the model play its last dialogues, and print the results of `seconds` of learning."""
        plan, model = self.session.plan, self.session.model
        episodes = plan.config.final_episodes
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
        self._write()
        facts["model"] = str(plan.folder / MODEL)
        facts["score it"] = scoring_command(self.session)
        facts["look at it"] = report_command(self.session)
        self._print_facts(facts)

    def _write(self) -> None:
        text = json.dumps(self.record, indent=1, default=str)
        write_text(self.session.plan.folder / RECORD, text + "\n")

    def _print_facts(self, facts: Facts) -> None:
        width = max(map(len, facts))
        for name, text in facts.items():
            self._print(f"{name:<{width}}  {text}")
        self._print("")

    def _print(self, line: str) -> None:
        if self.session.plan.config.progress_bar:
            print(line, flush=True)


class TrainingProgress(BaseCallback):
    """Shows how far a run is: a bar on a terminal, elsewhere a line now and then.

    Beside it stands what language models behind services were asked.

    Args:
        shown: what shows it.
        curve: of the run, whose last row stands beside it.
        dialogues: where the run is measured in dialogues.
    """

    def __init__(self, shown: Progress, curve: Curve, dialogues: StopAfterDialogues | None) -> None:
        super().__init__()
        self.shown, self.curve, self.dialogues = shown, curve, dialogues
        self._before = SPENT.counts()

    def _on_step(self) -> bool:
        done = self.dialogues.ended if self.dialogues else self.num_timesteps
        self.shown.reach(done, self._note())
        return True

    def _on_training_end(self) -> None:
        self.shown.finish()

    def _note(self) -> str:
        row = self.curve.rows[-1] if self.curve.rows else {}
        values = [(name, row[name]) for name in SHOWN if row.get(name, "") != ""]
        shown = [f"{name.replace('_', ' ')} {float(v):.3g}" for name, v in values]
        return ", ".join(filter(None, [*shown, usage_text(SPENT.since(self._before))]))


@contextmanager
def training_progress(
    session: Session, curve: Curve, dialogues: StopAfterDialogues | None
) -> Iterator[BaseCallback]:
    """A callback that shows how far the run is; an interrupted run's bar stays where it is."""
    total, unit = _length(session)
    with Progress(session.plan.algorithm.name, total, unit, keep=True) as shown:
        yield TrainingProgress(shown, curve, dialogues)
