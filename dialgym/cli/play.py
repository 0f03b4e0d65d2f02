"""``dialgym play``: play a party at the terminal."""

import secrets
from typing import Annotated, Any

import typer

from dialgym.cli.common import EnvId, Set, Trust, console, settings
from dialgym.registry import entry_of, make_task
from dialgym.simulators import Speaker
from dialgym.tasks import Task
from dialgym.views.dialogue import Dialogue, other_party

EXPERT = "optimal"
"""Who is the expert where the registry names none."""


def play(
    id: EnvId,
    as_: Annotated[
        str, typer.Option("--as", metavar="PARTY", help="The party that you play: system or user.")
    ] = "system",
    against: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who plays the other party.")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="A policy or checkpoint plays in your place.")
    ] = None,
    hints: Annotated[bool, typer.Option("--hints", help="Show what an expert would say.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the dialogue; random by default.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="KEY=VALUE",
            help="An option of reset that fixes a hidden part, word=crane.",
        ),
    ] = None,
    trust: Trust = False,
    set_: Set = None,
) -> None:
    """Play a dialogue at the terminal, or watch a policy play it."""
    from dialgym.rollouts.player import Player, make_dialogue, opened_for

    entry = entry_of(id)
    suited = make_task(entry, {}).for_people if policy is None else {}
    kwargs = {**suited, **settings(set_), "learner": as_, "simulator": against}
    dialogue = make_dialogue(entry, {**kwargs, "simulator": None})
    expert = entry.row.scores.get("expert_policy", EXPERT)
    kwargs["simulator"] = against or _opponent(dialogue, expert)
    number = secrets.randbelow(2**31) if seed is None else seed
    if policy is None:
        chosen: Any = _person(dialogue.task, as_, expert if hints else None)
    else:
        chosen = opened_for(policy, [entry], {**kwargs, "simulator": None}, trust)
    if hasattr(chosen, "predict") and entry.view == "utterance":
        entry = entry.in_view("token")
    player = Player(entry, chosen, kwargs, num_envs=1)
    fixed = settings(option, "--option")
    try:
        held, played = player.hold((number, 0), fixed)
    except (EOFError, KeyboardInterrupt):
        console.print("\nGoodbye.")
        return
    _finish(held, chosen, policy is not None)
    verdict = _verdict(bool(played.success[0]), held.turn, float(played.returns[0]))
    console.print(verdict, style="bold", end=" ")
    console.print(f"seed {number}", style="dim")


def _person(task: Task, party: str, expert: str | None) -> Speaker:
    """A person, who is shown what the expert would say if one is given."""
    from dialgym.simulators.human import HumanSpeaker

    if expert is not None and expert not in task.speakers.get(party, {}):
        raise ValueError(f"--hints: the {party} of {task.name} has no policy {expert!r} to ask.")
    return HumanSpeaker(None if expert is None else task.speaker_named(party, expert))


def _opponent(dialogue: Dialogue, expert: str) -> str | None:
    """The expert for the system, where there is one; else the task's default."""
    other = other_party(dialogue.task, dialogue.learner)
    known = expert in dialogue.task.speakers.get(other, {})
    return expert if other == "system" and known else None


def _verdict(solved: bool, turns: int, gained: float) -> str:
    counted = "1 turn" if turns == 1 else f"{turns} turns"
    return f"{'Solved' if solved else 'Not solved'} in {counted}, return {gained:g}."


def _finish(dialogue: Dialogue, player: Any, watched: bool) -> None:
    """Show what is left to be seen of a dialogue that is over, and what was hidden in it."""
    task, state, party = dialogue.task, dialogue.state, dialogue.learner
    if watched:
        from dialgym.views.render import render

        render("human", task, state, party)
    else:
        player.show(task, state, party)
    for speaker, text, private in task.transcript(state, other_party(task, party)):
        if private:
            console.print(f"({speaker}, in private: {text})", style="dim", markup=False)
