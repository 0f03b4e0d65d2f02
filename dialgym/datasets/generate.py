"""Carrying out what tasks declare in `dialgym.tasks.generators`."""

from collections.abc import Mapping, Sequence
from typing import Any

from dialgym.datasets.play import Game
from dialgym.datasets.schema import Recorder
from dialgym.tasks.generators import Scripts, Tree
from dialgym.views.dialogue import Dialogue
from dialgym.views.episodes import Job, Report, policy_rng
from dialgym.views.layout import clean


def play_tree(
    tree: Tree,
    dialogue: Dialogue,
    jobs: Sequence[Job],
    options: Mapping[str, Any] | None,
    recorder: Recorder,
    report: Report,
) -> None:
    """For each episode a dialogue of the tree's source, then its branches, in order of place."""
    for job in jobs:
        points = _play_source(tree, Game(dialogue, job, options), job)
        points[-1].record(recorder, kind=tree.kind)
        number = 0
        for branch in tree.branches:
            places = range(len(points) - 1) if branch.after is None else [branch.after]
            for after in places:
                if after >= len(points) - 1:  # it had ended by then
                    continue
                for _ in range(branch.games):
                    number += 1
                    game = points[after].fork().play(branch.policy, policy_rng(*job, number))
                    game.record(recorder, kind=branch.kind, source=0, branch=after)
        report(1)


def _play_source(tree: Tree, game: Game, job: Job) -> list[Game]:
    """The game after each number of the learner's utterances; the last one is over."""
    rng, task, learner = policy_rng(*job), game.dialogue.task, game.dialogue.learner
    points = []
    while not game.over:
        points.append(game.fork())
        game.say(clean(tree.source.reply(task, game.dialogue.state, rng), task.facts, learner))
    return [*points, game]


def play_scripts(
    scripts: Scripts,
    dialogue: Dialogue,
    jobs: Sequence[Job],
    recorder: Recorder,
    report: Report,
) -> None:
    """Play dialogues that were written in advance; one that stops while open is truncated."""
    task, learner = dialogue.task, dialogue.learner
    for job in jobs:
        script = scripts.script(task, policy_rng(*job))
        game = Game(dialogue, job, script.options)
        texts = iter(script.texts)
        while not game.over and (text := next(texts, None)) is not None:
            game.say(clean(text, task.facts, learner))
        if not game.over:
            game.exchange = game.exchange._replace(truncated=True)
        game.record(recorder)
        report(1)
