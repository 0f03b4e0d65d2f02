"""``dialgym play``: play a party at the terminal."""

import secrets
from collections.abc import Mapping
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any

import typer
from gymnasium.utils.seeding import np_random

from dialgym.cli.check_user import with_settings_of
from dialgym.cli.common import (
    EnvId,
    Param,
    Set,
    Trust,
    complain,
    complete_policies,
    console,
    known_command,
    settings,
    show_commands,
)
from dialgym.cli.verdict import AskRatings, ask_success, check_ratings
from dialgym.registry import RegistryEntry, entry_of
from dialgym.simulators import Speaker
from dialgym.simulators.human import examples, turns_of
from dialgym.simulators.language_model import LM, LanguageModelSpeaker, is_language_model
from dialgym.tasks import Task
from dialgym.tasks.lookup import find_task, parse_options
from dialgym.views.dialogue import Dialogue
from dialgym.views.speakers import other_party


def play(
    id: EnvId,
    as_: Annotated[
        str, typer.Option("--as", metavar="PARTY", help="The party that you play: system or user.")
    ] = "system",
    against: Annotated[
        str | None,
        typer.Option(
            metavar="NAME | PATH | zoo:NAME | hf:NAME | openai:MODEL | lm",
            help="The other party: a registered name, a trained model, a language model.",
            autocompletion=complete_policies,
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="A policy plays in your place: a name, run, zoo:NAME, language model's folder.",
            autocompletion=complete_policies,
        ),
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
    param: Param = None,
    ratings: AskRatings = None,
    show_prompt: Annotated[
        bool,
        typer.Option("--show-prompt", help="Print what a language model --against is told, only."),
    ] = False,
) -> None:
    """Play a dialogue at the terminal, or watch a policy play it.

    It begins with the rules; /help shows all of them and what may be said, /hint what an expert
    would say, /undo takes back what you said last, /quit ends. Lines may be piped in. A setting
    by -p is of --policy, or where you play, of --against.
    """
    from dialgym.rollouts.player import rules_of

    entry = entry_of(id)
    if hints and policy is not None:
        raise ValueError("--hints: for who plays; expected no --policy, which is watched instead")
    kwargs = {**(find_task(entry.row.task).for_people if policy is None else {}), **settings(set_)}
    fixed = parse_options(rules_of(entry, kwargs), option, "--option") if option else {}
    chosen = settings(param, "--param")
    if against and kwargs.get("simulator"):
        raise ValueError("--against and a setting simulator: both are the other party; give one.")
    if show_prompt:
        told = prompt_of(
            entry, {**kwargs, "learner": as_}, {"name": against, **chosen}, seed, fixed
        )
        console.print(told, soft_wrap=True)
        return
    if policy is None:
        check_ratings(ratings)
    play_dialogue(entry, as_, against, kwargs, fixed, policy, hints, seed, trust, chosen, ratings)


def prompt_of(
    entry: RegistryEntry,
    kwargs: dict[str, Any],
    simulator: dict[str, Any],
    seed: int | None,
    options: dict[str, Any],
) -> str:
    """The first message of the chat of a language model that plays the other party.

    Args:
        entry: the environment.
        kwargs: its settings.
        simulator: the model's name and settings.
        seed: of the dialogue; None for a random one.
        options: of the reset.

    Raises:
        ValueError: it is no language model behind a service.
    """
    from dialgym.rollouts.episodes import episode_seed
    from dialgym.rollouts.player import make_dialogue

    dialogue = make_dialogue(entry, {**kwargs, "simulator": simulator})
    task, speaker = dialogue.task, dialogue.other
    if not isinstance(speaker, LanguageModelSpeaker):
        raise ValueError(
            f"--show-prompt: expected --against openai:MODEL or lm; got {simulator['name']!r}."
        )
    party = other_party(task, dialogue.learner)
    number = secrets.randbelow(2**31) if seed is None else seed
    state = task.initial(np_random(episode_seed(number, 0))[0], options)
    return speaker.form.first_message(task, task.observed(state, party), party)


def play_dialogue(
    entry: RegistryEntry,
    party: str,
    against: Any,
    kwargs: dict[str, Any],
    fixed: dict[str, Any] | None = None,
    policy: str | None = None,
    hints: bool = False,
    seed: int | None = None,
    trust: bool = False,
    policy_kwargs: dict[str, Any] | None = None,
    ratings: Path | None = None,
) -> None:
    """Let a person at the terminal, or a policy, play a dialogue to its end; see `play`.

    Args:
        entry: the environment.
        party: of the person.
        against: speaker of the other party, as of an env's `simulator`; None for that of `kwargs`,
            else the expert or the default.
        kwargs: settings of the environment.
        fixed: options of the reset.
        policy, hints, seed, trust: as of `play`.
        policy_kwargs: settings of `policy`, or without one, of `against`.
        ratings: folder for the person's answer, if the user was served; None asks nothing.
    """
    from dialgym.rollouts.player import Player, make_dialogue, policy_names
    from dialgym.rollouts.policies import open_policy, sets_drawing

    given = policy_kwargs or {}
    own, others = (given, {}) if policy else ({}, given)
    against = against or kwargs.get("simulator")
    kwargs = {**kwargs, "learner": party, "simulator": None}
    dialogue = make_dialogue(entry, kwargs)
    expert = dialogue.task.expert_for_people or entry.row.expert_name
    number = secrets.randbelow(2**31) if seed is None else seed
    if policy is None:
        chosen: Any = PlayConsole(dialogue.task, party, entry, expert).person(hints)
    else:
        chosen = open_policy(policy, policy_names([entry], kwargs), dialogue.learner, trust, own)
    kwargs["simulator"] = _opponent(dialogue, against, expert, trust, others)
    if hasattr(chosen, "predict") and not entry.kind.numeric:
        entry = entry.in_view("token")
    best, named = not sets_drawing(own), own if isinstance(chosen, str) else {}
    player = Player(entry, chosen, kwargs, policy_kwargs=named, num_envs=1, deterministic=best)
    ended = _play_to_end(player, chosen, (number, 0), fixed)
    if ended is None:
        console.print("\nGoodbye.")
        return
    finished, played = ended
    _finish(finished, chosen, watched=policy is not None)
    _print_verdict(bool(played.success[0]), finished.turn, float(played.returns[0]))
    console.print(f"seed {number}", style="dim")
    if policy is None:
        spoken = finished.task.transcript(finished.state, party)
        texts = [line.text for line in spoken if not line.private]
        about = {"env": entry.id, "settings": kwargs, "seed": number}
        ask_success(ratings, texts, QUESTIONS.get(party, QUESTIONS["system"]), **about)


QUESTIONS = {
    "user": "Did you get all that you wanted?",
    "system": "Did the user get all that it wanted?",
}


def _play_to_end(player: Any, speaker: Any, job: Any, options: Any) -> Any:
    """The dialogue at its end, and how it went; None if the person leaves."""
    while True:
        try:
            return player.play_one(job, options)
        except UndoError:
            console.print(f"Taken back: {speaker.take_back()}", style="dim")
        except (EOFError, KeyboardInterrupt):
            return None


COMMANDS = {
    "/help": "Show the rules, what may be said here, and these commands.",
    "/hint": "Show what an expert would say.",
    "/undo": "Take back what you said last.",
    "/quit": "Leave; so do Ctrl-D and Ctrl-C.",
}
SHOWN = 12
"""Most utterances that are listed where the rules foresee only some."""
COUNTED = 10_000
"""Most utterances that are counted."""


class UndoError(Exception):
    """The person takes back an utterance."""


class PlayConsole:
    """Output for a person at the terminal, and the commands of that person.

    Args:
        task: the rules.
        party: the person's.
        entry: the environment.
        expert: name of the speaker that gives hints.
    """

    def __init__(self, task: Task, party: str, entry: RegistryEntry, expert: str) -> None:
        self.task, self.party, self.entry, self.expert = task, party, entry, expert

    def person(self, hints: bool) -> Speaker:
        """The person as a speaker, with hints before each turn if they are wanted."""
        from dialgym.simulators.human import HumanSpeaker

        if hints and not self._knows_expert:
            raise ValueError(f"--hints: {self._no_expert()}")
        self._person = HumanSpeaker(
            self._speaker() if hints else None, handle_command=self.handle_command, begin=self.open
        )
        return self._person

    def open(self) -> None:
        """Say what the game is, how long it is, and which commands there are."""
        console.print(self.entry.label, style="bold")
        for text in (self.entry.row.description, self.task.instructions[self.party]):
            console.print(text)
        turns = turns_of(self.task, self.party)
        counted = "1 turn" if turns == 1 else f"at most {turns} turns"
        console.print(f"You are the {self.party}, and have {counted}. ", end="")
        console.print("/help shows all rules, /hint helps, /quit ends.\n", style="dim")

    def handle_command(self, line: str, task: Task, state: Any) -> None:
        """Run a command, a line that begins with a slash.

        Raises:
            EOFError: the person leaves.
            UndoError: it takes back what it said last.
        """
        if not known_command(line, COMMANDS):
            return
        if line == "/quit":
            raise EOFError
        if line == "/undo" and self._person.history:
            raise UndoError
        if line == "/undo":
            complain("there is nothing to take back yet.")
        elif line == "/hint" and self._knows_expert:
            self._person.hint(task, state, self._speaker())
        elif line == "/hint":
            complain(self._no_expert())
        else:
            self._help(task, state)

    def _help(self, task: Task, state: Any) -> None:
        for paragraph in rules(task):
            console.print(f"{paragraph}\n")
        console.print(f"You may say {self._legal(task, state)}.\n")
        show_commands(COMMANDS)

    def _legal(self, task: Task, state: Any) -> str:
        legal = examples(task.constraint(state, self.party), COUNTED)
        if not legal:
            return f"any text of up to {task.facts.longest[self.party]} characters"
        if len(legal) <= SHOWN:
            return f"one of: {', '.join(legal)}"
        count = f"{len(legal):,}" if len(legal) < COUNTED else f"{COUNTED:,} or more"
        apart = legal[:: max(1, len(legal) // SHOWN)][:SHOWN]
        return f"one of {count} utterances, such as: {', '.join(apart)}"

    @property
    def _knows_expert(self) -> bool:
        return self.expert in self.task.speakers.get(self.party, {})

    def _speaker(self) -> Speaker:
        return self.task.speaker_named(self.party, self.expert)

    def _no_expert(self) -> str:
        return f"the {self.party} of {self.task.name} has no policy {self.expert!r} to ask."


def rules(task: Task) -> list[str]:
    """The rules of a task in paragraphs: the part of its docstring for players."""
    text = (getdoc(type(task)) or "").partition("\nArgs:")[0].replace("`", "")
    paragraphs = [part.strip("\n") for part in text.split("\n\n")[1:] if part.strip()]
    return [part if part.startswith((" ", "-")) else " ".join(part.split()) for part in paragraphs]


def _opponent(
    dialogue: Dialogue, against: Any, expert: str, trust: bool, settings: Mapping[str, Any]
) -> Any:
    """The other party with settings: by default the expert for the system, else the task's own."""
    other = other_party(dialogue.task, dialogue.learner)
    known = expert in dialogue.task.speakers.get(other, {})
    opponent = against or (expert if other == "system" and known else None)
    loaded = isinstance(against, str) and not (against == LM or is_language_model(against))
    own = {**settings, **({"trust": True} if loaded and trust else {})}
    return with_settings_of(opponent or {"name": None}, own, {}) if own else opponent


def _print_verdict(solved: bool, turns: int, episode_return: float) -> None:
    counted = "1 turn" if turns == 1 else f"{turns} turns"
    verdict = f"{'Solved' if solved else 'Not solved'} in {counted}, return {episode_return:g}."
    console.print(verdict, style="bold green" if solved else "bold red", end=" ")


def _finish(dialogue: Dialogue, player: Any, watched: bool) -> None:
    """Show what is left to be seen of a dialogue that is over, and what was hidden in it."""
    task, state, party = dialogue.task, dialogue.state, dialogue.learner
    if watched:
        from dialgym.views.render import render

        render("human", task, state, party)
    else:
        player.show(task, state, party)
    for line in task.judgement(state) if hasattr(task, "judgement") else ():
        console.print(line, style="dim")
    for speaker, text, private in task.transcript(state, other_party(task, party)):
        if private:
            console.print(f"({speaker}, in private: {text})", style="dim")
