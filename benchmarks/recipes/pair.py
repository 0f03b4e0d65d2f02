"""Self-play of questioner and answerer, and how far both have left the language of their clones."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import agents
import dialgym
from benchmarks.recipes.job import EVALUATION_SEED, RecipeJob
from dialgym.tasks.twenty_questions.policies import Truthful

ASKS, ANSWERS = PARTIES = "system", "user"
CLONES = {ASKS: "questioner", ANSWERS: "answerer"}


def models(job: RecipeJob) -> dict[str, Path]:
    """The files of both parties."""
    if not job.method.hyperparameters["learning"]:
        return clones(job)
    return {party: job.folder / party / "model.zip" for party in PARTIES}


def clones(job: RecipeJob, ahead: str = "") -> dict[str, Path]:
    """Those that a job begins with; with ``+1`` others, of the next seed."""
    return {party: job.of(name + ahead).model for party, name in CLONES.items()}


def learn(job: RecipeJob) -> None:
    """Learn from dialogues of the two; the questioner once more, as the model that is scored."""
    given, options = job.method.hyperparameters, job.recipe.options
    if given["learning"]:
        pair = agents.SelfPlay(
            job.method.environment, options["rows"], job.seed, **job.method.settings
        )
        learners = beginning(job, pair, clones(job), given.get("kl", 0.0), **options["groups"])
        pair.learn(learners, options["tokens"], given["learning"])
        for party, path in models(job).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            learners[party].save(path)
    job.folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(models(job)[ASKS], job.model)


def beginning(
    job: RecipeJob, pair: agents.SelfPlay, files: Mapping[str, Path], kl: float, **settings: Any
) -> dict[str, agents.GRPO]:
    """Learners that begin as saved models; a nat of divergence from the job's clones costs `kl`."""
    near, network = clones(job), job.recipe.options["policy_kwargs"]
    more = {"policy_kwargs": network, "device": "cpu", **settings}
    learners = {
        party: agents.GRPO(
            "GPTPolicy", side, seed=job.seed, kl={"coef": kl, "reference": near[party]}, **more
        )
        for party, side in pair.sides.items()
    }
    for party, learner in learners.items():
        agents.start_from(learner.policy, files[party])
    return learners


# Scores


def figures(job: RecipeJob, _: Any) -> dict[str, float]:
    """Returns of the pair, and of each with others, and the divergence of both from clones."""
    own, strangers = models(job), clones(job, "+1")
    pair, learners = meet(job, own)
    successes = [game.infos[ASKS]["is_success"] for game in pair.dialogues.games]
    return {
        "own": earned(pair),
        "found": float(np.mean(successes)),
        "true": true_answers(pair),
        **{f"kl {party}": divergence(learners[party]) for party in PARTIES},
        "asks a clone": earned(meet(job, {**own, ANSWERS: strangers[ANSWERS]})[0]),
        "asked by a clone": earned(meet(job, {**own, ASKS: strangers[ASKS]})[0]),
        "asked by the script": with_a_script(job, own[ANSWERS]),
    }


def meet(
    job: RecipeJob, files: Mapping[str, Path]
) -> tuple[agents.SelfPlay, dict[str, agents.GRPO]]:  # fmt: skip
    """Let two saved models play, once in each row."""
    method, episodes = job.method, job.recipe.episodes
    seed = EVALUATION_SEED + job.seed
    pair = agents.SelfPlay(method.environment, episodes, seed, **method.settings)
    whole = {"group_size": None, "n_steps": job.recipe.options["groups"]["n_steps"]}
    learners = beginning(job, pair, files, 1.0, **whole)
    pair.learn(learners, 1, learning=())
    return pair, learners


def earned(pair: agents.SelfPlay) -> float:
    """The mean return, which is the same for both."""
    return float(pair.dialogues.returns[ASKS].mean())


def with_a_script(job: RecipeJob, answerer: Path) -> float:
    """The mean return of the scripted questioner with a saved answerer."""
    settings = {**job.method.settings}
    settings["simulator"] = {"name": "agents:ChatAgent", "talker": str(answerer)}
    count, seeds = job.recipe.episodes // 2, [EVALUATION_SEED + job.seed]
    env_id = job.method.environment
    return dialgym.evaluate("greedy", env_id, count, seeds, settings).mean_return


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
