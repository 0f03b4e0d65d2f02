"""Cost of a chat and of the doors to other libraries, as ratios to the utterance view.

    python -m benchmarks.doors [--episodes 20]

Texts are those that `tests/doors/test_agreement.py` plays. What is compared takes turns in one run,
so the load of a machine meets all alike. A door whose library is missing keeps its figures of an
earlier run: `make doors` builds the environments.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from statistics import median
from typing import Any

from benchmarks.environments.timing import alternate
from benchmarks.tables.records import RECORDS, Figures, read_record, run_measurement
from dialgym.experiments.tables import markdown_table
from dialgym.io.objects import load
from dialgym.registry import entry_of
from dialgym.testing.agreement import FAMILIES, Player, by_view, case_of
from dialgym.views.chat import Chat, ChatForm
from dialgym.views.chat_batch import ChatBatch
from dialgym.views.making import make_view
from tests.doors.doors import DOORS, Door
from tests.support.app_server import app_server

NAME, COMMAND = "doors", "python -m benchmarks.doors"
REPEATS = 9
ALONE = [family for family in FAMILIES if not family.endswith(" user")]
GAME = "Wordle-20"
"""The family by which doors are compared: its own turns cost least, so a door's cost shows most."""
MOST_OF_CHAT, LEAST_STEPS = 2.0, 200
"""Bars: cost of a chat over the utterance view's, and OpenEnv's steps a second of a socket."""
HEAD = ("family", "utterance view", "`Chat`", "`ChatBatch`", "cost of `Chat`", "of `ChatBatch`")
DOOR_HEAD = ("door", "library", "turns", "of the utterance view", "cost")
Scripts = Sequence[Sequence[str]]


def measure(episodes: int) -> dict[str, Any]:
    """Figures of chats by family, of doors by name, and of a socket."""
    known = (RECORDS / f"{NAME}.json").exists()
    kept = read_record(NAME)["figures"] if known else {"doors": {}, "socket": {}}
    others = {name: door for name, door in DOORS.items() if door.needs != "dialgym"}
    installed = {name: door for name, door in others.items() if find_spec(door.needs)}
    doors = {name: door_figures(door, episodes) for name, door in installed.items()}
    socket = socket_figures(episodes) if find_spec("openenv") else kept["socket"]
    chats = {family: chat_figures(family, episodes) for family in ALONE}
    return {"chats": chats, "doors": {**kept["doors"], **doors}, "socket": socket}


def chat_figures(family: str, episodes: int) -> dict[str, float]:
    """Turns per CPU-second of the utterance view, a chat and a batch of chats, by name."""
    scripts = scripts_of(family, episodes)
    env_id, settings, *_ = case_of(family, 0)
    env: Any = make_view(entry_of(env_id), **settings)
    form = ChatForm(env.task, env.learner)
    chat, batch = Chat(env_id, **settings), ChatBatch(env_id, episodes, **settings)
    works = {
        "view": partial(play_view, env, [[form.read(text) for text in texts] for texts in scripts]),
        "chat": partial(play_chat, chat, scripts),
        "batch": partial(play_batch, batch, scripts),
    }
    return rates(works, sum(map(len, scripts)))


def scripts_of(family: str, episodes: int) -> Scripts:
    """Texts of the dialogues of a family, by their seeds."""
    return [case_of(family, seed)[2] for seed in range(episodes)]


def play_view(env: Any, scripts: Scripts) -> None:
    """Say the texts in the utterance view."""
    for seed, texts in enumerate(scripts):
        env.reset(seed=seed)
        for text in texts:
            env.step(text)


def play_chat(chat: Chat, scripts: Scripts) -> None:
    """Say the texts in a chat."""
    for seed, texts in enumerate(scripts):
        chat.reset(seed)
        for text in texts:
            chat.step(text)


def play_batch(batch: ChatBatch, scripts: Scripts) -> None:
    """Say the texts in rounds, a dialogue a row."""
    batch.reset([*range(len(scripts))])
    turn = 0
    while batch.open:
        batch.step({row: scripts[row][turn] for row in batch.open})
        turn += 1


def rates(works: Mapping[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Turns per CPU-second of works that take turns in being measured."""
    return {name: round(turns / spent) for name, spent in alternate(works, REPEATS).items()}


def door_figures(door: Door, episodes: int) -> dict[str, Any]:
    """Turns per CPU-second of a door and of the utterance view, each made anew for a dialogue."""
    players = {"door": load(door.player), "view": by_view}
    works = {name: partial(play_cases, player, episodes) for name, player in players.items()}
    found = rates(works, sum(map(len, scripts_of(GAME, episodes))))
    return {"library": library(door.needs), **found}


def play_cases(player: Player, episodes: int) -> None:
    """Play the dialogues by a player."""
    for seed in range(episodes):
        env_id, settings, texts, _ = case_of(GAME, seed)
        player(env_id, settings, seed, texts)


def library(package: str) -> str:
    """Name and version of what a package belongs to."""
    name = packages_distributions()[package][0]
    return f"{name} {version(name)}"


def socket_figures(episodes: int) -> dict[str, float]:
    """Steps of OpenEnv's server and client, in this process, by a second and a CPU-second."""
    scripts = scripts_of(GAME, episodes)
    steps = sum(map(len, scripts))
    from dialgym.bridges import openenv

    with app_server(openenv.app(f"{GAME}-v0")) as url:
        spent = [asyncio.run(play_socket(url, scripts)) for _ in range(REPEATS + 1)][1:]
    names = ("second", "CPU-second")
    return {name: round(steps / median(each)) for name, each in zip(names, zip(*spent))}


async def play_socket(url: str, scripts: Scripts) -> tuple[float, float]:
    """Seconds and CPU-seconds of the steps of dialogues over one socket, resets apart."""
    from openenv.core import GenericEnvClient

    spent, cpu = 0.0, 0.0
    async with GenericEnvClient(base_url=url) as client:
        for seed, texts in enumerate(scripts):
            await client.reset(seed=seed)
            since, used = time.perf_counter(), time.process_time()
            for text in texts:
                await client.step({"text": text})
            spent += time.perf_counter() - since
            cpu += time.process_time() - used
    return spent, cpu


def table(figures: Figures) -> str:
    """Tables of doors and of chats, and the steps of a socket."""
    doors, chats, socket = figures["doors"], figures["chats"], figures["socket"]
    parts = [
        f"Turns per CPU-second of {GAME}, in an environment a dialogue ({COMMAND}):",
        markdown_table([DOOR_HEAD, *[_door_row(name, each) for name, each in doors.items()]]),
        "Turns per CPU-second by family, of dialogues in an environment that is made once:",
        markdown_table([HEAD, *[_chat_row(name, each) for name, each in chats.items()]]),
    ]
    if socket:
        parts.append(
            f"OpenEnv over one WebSocket, server and client in one process: {socket['second']:,} "
            f"steps a second, {socket['CPU-second']:,} a CPU-second.\n"
        )
    return "\n".join(part if part.endswith("\n") else f"{part}\n" for part in parts)


def _door_row(name: str, found: Mapping[str, Any]) -> list[str]:
    door, view = found["door"], found["view"]
    return [name, found["library"], f"{door:,}", f"{view:,}", f"{view / door:.2f} x"]


def _chat_row(family: str, found: Mapping[str, float]) -> list[str]:
    view, chat, batch = found["view"], found["chat"], found["batch"]
    costs = [f"{view / each:.2f} x" for each in (chat, batch)]
    return [family, f"{view:,}", f"{chat:,}", f"{batch:,}", *costs]


if __name__ == "__main__":
    run_measurement(__doc__, NAME, COMMAND, 20, measure, table)
