"""Recipe: questioner and answerer of twenty questions learn together, from clones.

Both get what the dialogue earns, and nothing says that a yes has to mean yes. How far they have
left the language that they began with shows with partners who still speak it: the scripted ones,
and clones of another seed, which nobody has learned with.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import agents
import dialgym
from benchmarks.recipes.runs import EVALUATION_SEED, NETWORK, Run, imitate
from benchmarks.recipes.tables import Line, with_interval
from dialgym.io.files import write_text
from dialgym.tasks.twenty_questions.policies import Truthful

ENV = "dialgym/TwentyQuestions-8-v0"
GAME = {"items": 6, "questions": 6, "turns": 6}
BEST = -2.0
"""Bound of all questioners with a truthful answerer, by exact search (`optimal`)."""
ASKS, ANSWERS = PARTIES = "system", "user"
IMITATED = {ASKS: "random-mixture", ANSWERS: "truthful"}
GAMES, STEPS = 1_000, 200
"""Dialogues to imitate, and gradient steps."""
TOKENS = 40_000
EPISODES = 500
FIGURES = "pair.json"
ROWS = 64
GROUPS = {
    "group_size": 8,
    "n_steps": 80,
    "n_epochs": 2,
    "batch_size": 512,
    "learning_rate": 1e-3,
    "credit": "turn",
}


@dataclass(frozen=True)
class Method:
    """A row of the table.

    Attributes:
        name: what the table calls it, and its folder.
        learning: the parties that learn by playing with each other.
        kl: what a nat of divergence from its clone costs each.
    """

    name: str
    learning: tuple[str, ...] = PARTIES
    kl: float = 0.0


BC = Method("BC pair", ())
METHODS = (BC, Method("pair"), Method("pair near BC", kl=0.1), Method("questioner alone", (ASKS,)))


def runs(folder: Path, seeds: int) -> list[Run]:
    """Every training of the recipe, seed by seed."""
    return [
        Run(method.name, ENV, seed, folder / f"seed{seed}" / method.name, learn, method, GAME)
        for seed in range(seeds)
        for method in METHODS
    ]


def models(run: Run) -> dict[str, Path]:
    """The files of both parties."""
    if run.settings is BC:
        return clones(run)
    return {party: run.folder / party / "model.zip" for party in PARTIES}


def clones(run: Run, other: bool = False) -> dict[str, Path]:
    """Those that a run begins with; or others, of the next seed."""
    folder = run.folder.parents[1] / "clones" / f"seed{run.seed + other}"
    return {party: folder / party / "model.zip" for party in PARTIES}


# Training


def learn(run: Run) -> None:
    """Both parties, their figures, and the questioner once more, as the model that is scored."""
    clone(run)
    if run.settings is not BC:
        play(run)
    write_text(run.folder / FIGURES, json.dumps(figures(run)) + "\n")
    shutil.copy(models(run)[ASKS], run.model)


def clone(run: Run) -> None:
    """Imitate the scripted speakers, with the run's seed and the next one."""
    for other in (False, True):
        for party, file in clones(run, other).items():
            if not file.is_file():
                own = replace(run, seed=run.seed + other, folder=file.parent)
                place = {"learner": ANSWERS, "simulator": IMITATED[ASKS]}
                where = {**GAME, **(place if party == ANSWERS else {})}
                imitate(own, IMITATED[party], GAMES, STEPS, NETWORK, where)


def play(run: Run) -> None:
    """Learn from the dialogues that the two hold with each other."""
    method: Method = run.settings
    pair = agents.SelfPlay(ENV, ROWS, run.seed, **GAME)
    learners = beginning(run, pair, clones(run), method.kl, **GROUPS)
    pair.learn(learners, TOKENS, method.learning)
    for party, path in models(run).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        learners[party].save(path)


def beginning(
    run: Run, pair: agents.SelfPlay, files: Mapping[str, Path], kl: float, **settings: Any
) -> dict[str, agents.GRPO]:
    """Learners that begin as saved models; a nat of divergence from the run's clones costs `kl`."""
    near, more = clones(run), {"policy_kwargs": NETWORK, "device": "cpu", **settings}
    learners = {
        party: agents.GRPO(
            "GPTPolicy", side, seed=run.seed, kl={"coef": kl, "reference": near[party]}, **more
        )
        for party, side in pair.sides.items()
    }
    for party, learner in learners.items():
        agents.start_from(learner.policy, files[party])
    return learners


# Scores


def figures(run: Run) -> dict[str, float]:
    """Returns of the pair, and of each with others, and the divergence of both from clones."""
    own, strangers = models(run), clones(run, other=True)
    pair, learners = meet(run, own)
    successes = [game.infos[ASKS]["is_success"] for game in pair.dialogues.games]
    return {
        "own": earned(pair),
        "found": float(np.mean(successes)),
        "true": true_answers(pair),
        **{f"kl {party}": divergence(learners[party]) for party in PARTIES},
        "asks a clone": earned(meet(run, {**own, ANSWERS: strangers[ANSWERS]})[0]),
        "asked by a clone": earned(meet(run, {**own, ASKS: strangers[ASKS]})[0]),
        "asked by the script": with_a_script(run, own[ANSWERS]),
    }


def meet(
    run: Run, files: Mapping[str, Path]
) -> tuple[agents.SelfPlay, dict[str, agents.GRPO]]:  # fmt: skip
    """Let two saved models play, once in each row."""
    pair = agents.SelfPlay(ENV, EPISODES, EVALUATION_SEED + run.seed, **GAME)
    whole = {"group_size": None, "n_steps": GROUPS["n_steps"]}
    learners = beginning(run, pair, files, 1.0, **whole)
    pair.learn(learners, 1, learning=())
    return pair, learners


def earned(pair: agents.SelfPlay) -> float:
    """The mean return, which is the same for both."""
    return float(pair.dialogues.returns[ASKS].mean())


def with_a_script(run: Run, answerer: Path) -> float:
    """The mean return of the scripted questioner with a saved answerer."""
    partner = {**GAME, "simulator": {"name": "agents:ChatAgent", "talker": str(answerer)}}
    seeds = [EVALUATION_SEED + run.seed]
    return dialgym.evaluate("greedy", ENV, EPISODES // 2, seeds, partner).mean_return


def true_answers(pair: agents.SelfPlay) -> float:
    """The share of all answers that the truthful answerer would have given."""
    task: Any = pair.dialogues.games[0].task
    truthful, rng, right = Truthful(), np.random.default_rng(0), list[bool]()
    for game in pair.dialogues.games:
        held: Any = game.dialogue_state
        again = task.initial(rng, {"item": task.table.names[held.item][0]})
        for line in held.lines:
            if line.speaker == ANSWERS:
                right.append(line.text == truthful.reply(task, again, rng))
            task.speak(again, line.text, rng)
    return float(np.mean(right))


def divergence(learner: agents.GRPO) -> float:
    """Nats a token from the clone, over what the learner has just said."""
    rollout = learner.rollout
    assert rollout.reference_log_probs is not None
    return float((rollout.log_probs - rollout.reference_log_probs).mean())


# The table


def figure(name: str, digits: int = 2) -> Callable[[Line], str]:
    """A column: the mean over seeds of what `figures` found, and its interval."""

    def column(line: Line) -> str:
        texts = [(run.folder / FIGURES).read_text("utf-8") for run in line.runs]
        return with_interval(np.array([json.loads(text)[name] for text in texts]), digits)

    return column


BASE = ("method", "seeds")
COLUMNS = {
    "return": figure("own"),
    "found": figure("found"),
    "true answers": figure("true"),
    "nats a token, questioner": figure("kl system"),
    "answerer": figure("kl user"),
    "questioner with: scripted": lambda line: with_interval(line.means, 2),
    "other clone": figure("asks a clone"),
    "answerer with: scripted": figure("asked by the script"),
    "other clone ": figure("asked by a clone"),
}
NOTE = f"""\
Six things, questions and turns. {EPISODES} dialogues a seed and pairing (half as many with the
scripted questioner, `greedy`), tokens drawn. Clones imitate {GAMES:,} dialogues of `random-mixture`
and `truthful` in {STEPS} gradient steps; what is learned by playing together (`SelfPlay`, both by
GRPO) takes {TOKENS:,} tokens of the two. With a truthful answerer no questioner earns more than
{BEST:.2f}; what is better has made a language of its own. Other clones are of another seed, and
nobody's partners in learning. In brackets 95 % intervals (Student's t over the seeds).
"""
