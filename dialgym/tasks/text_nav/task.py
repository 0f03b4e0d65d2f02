"""The rules of TextNav."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from dialgym.errors import whole_number
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.grid_picture import CELL, GridPicture
from dialgym.tasks.text_nav.houses import GRID, ROOMS, SIDES, build
from dialgym.tasks.worlds import CommandWorld, WorldState, WorldTask, told

ROOM = "dialgym.tasks.text_nav.policies"
DONE = "the errand is done"
Place = tuple[int, int, tuple[bool, ...]]
"""The room where one is; that of the thing, or the number of rooms where it is carried; the doors
that are open."""


class TextNav(WorldTask):
    """Find a thing in a house of text, bring it to the room where it is asked for, and use it.

    The house is made of a seed: rooms, ways between them, doors that are closed at first, and an
    errand, such as to eat the apple in the kitchen. The host (`user`) first chooses where the thing
    lies and where the `system` begins, in private. Then the rules answer each command in its name:
    they tell the room, what is in it, and all commands that do something there. Fully observed they
    also tell in which room the thing is; partially observed one has to look for it.

    Commands: ``go north``, ``open north door`` (and the other sides), ``take apple``, ``drop
    apple``, ``eat apple``, which works in the room of the errand alone, and ``look at stove``,
    which changes nothing. Commands that do nothing here, and other text, cost a turn.

    Rewards: 1 for the errand, else 0. The host's reward is the opposite. The dialogue is over
    (terminated) with the errand, a success, or after `turns` commands.

    The policy `optimal` has the best expected return of all that know the house and what was told:
    it is computed by value iteration, partially observed over beliefs of where the thing may be.
    `informed` sees where it is, which is a bound that nobody who does not can be asked to reach.

    Args:
        house: the seed of the house.
        observation: ``"full"`` or ``"partial"``.
        rooms: how many, from 2 to 12.
        doors: ways that a door closes, from 0 to 4.
        turns: commands in a dialogue.
        constraint: what action masks allow: ``"commands"`` (those that do something here), or None
            (any text).

    Options of reset: ``start``, such as ``apple in attic and you in hall``; the thing lies in any
    room but that of the errand.

    Versions:
        v0: the first, of dialgym 0.1.

    Raises:
        ValueError: a setting is not one of the above.

    Source: the game is that of LMRL-Gym (Abdulhai et al., 2023), of a house in TextWorld; houses,
    errands and texts are our own.
    """

    name = "TextNav"
    how_to_play = {  # noqa: RUF012
        "system": "You are in a house of text and have an errand. Say one of the commands that you "
        "are told, and nothing else. The errand is worth 1, and nothing else is worth anything.",
        "user": "Choose where the thing of an errand lies in a house, and where the other one "
        "begins, in private; the rules then answer commands in your name.",
    }
    speakers = {  # noqa: RUF012
        USER: WorldTask.speakers[USER],
        SYSTEM: {**WorldTask.speakers[SYSTEM], "wanderer": f"{ROOM}:Wanderer"},
    }
    generators = {  # noqa: RUF012
        name: f"{ROOM}:{name}" for name in ("graded", "branching", "halves")
    }

    def __init__(
        self,
        house: int = 0,
        observation: str = "full",
        rooms: int = 8,
        doors: int = 2,
        turns: int = 15,
        constraint: str | None = "commands",
    ) -> None:
        whole_number("house", house, self.name, least=0)
        whole_number("rooms", rooms, self.name, least=2, most=len(ROOMS))
        whole_number("doors", doors, self.name, least=0, most=4)
        self.house = build(house, rooms, doors)
        super().__init__(self._world(observation == "partial"), turns, observation, constraint)

    @property
    def errand(self) -> str:
        """The errand in words."""
        house = self.house
        return f"{house.verb} the {house.thing} in the {house.rooms[house.goal]}"

    def conditions(self, party: str) -> list[str]:
        """The errand first."""
        return [f"The errand is to {self.errand}.", *super().conditions(party)]

    def _world(self, partial: bool) -> CommandWorld:
        """The tables: a place is a room, where the thing is, and which doors are open."""
        house, rooms = self.house, range(len(self.house.rooms))
        commands = self._commands()
        open_doors = [*product((False, True), repeat=house.door_count)]
        self._places = [*product(rooms, range(len(rooms) + 1), open_doors)]
        number: dict[Place | None, int] = {place: at for at, place in enumerate(self._places)}
        number[None] = done = len(self._places)
        after, texts = np.empty((done + 1, len(commands)), np.int64), []
        for at, place in enumerate(self._places):
            can = dict(self._possible(*place))
            after[at] = [number[can[c]] if c in can else -1 for c in commands]
            texts.append(self._text(place, list(can), partial))
        after[done] = done
        allowed = after >= 0
        after = np.where(allowed, after, np.arange(done + 1)[:, None])
        signals, said = told([*texts, DONE])
        begun = [(you, lies) for lies in rooms if lies != house.goal for you in rooms]
        return CommandWorld(
            commands, after, allowed, np.arange(done + 1) == done, signals, said,
            np.array([number[you, lies, open_doors[0]] for you, lies in begun]),
            tuple(f"{house.thing} in {house.rooms[lies]} and you in {house.rooms[you]}"
                  for you, lies in begun),
            0.0, 1.0, 0.0,
        )  # fmt: skip

    def _commands(self) -> tuple[str, ...]:
        house = self.house
        moves = [*(f"go {side}" for side in SIDES), *(f"open {side} door" for side in SIDES)]
        uses = [f"{verb} {house.thing}" for verb in ("take", "drop", house.verb)]
        return *moves, *uses, *(f"look at {ROOMS[room]}" for room in house.rooms)

    def _possible(
        self, room: int, lies: int, doors: tuple[bool, ...]
    ) -> Iterator[tuple[str, Place | None]]:
        """Commands that do something in a `Place`, and the one after; None of the errand."""
        house, carried = self.house, len(self.house.rooms)
        for side, there, door in zip(SIDES, house.ways[room], house.doors[room]):
            if door >= 0 and not doors[door]:
                yield f"open {side} door", (room, lies, (*doors[:door], True, *doors[door + 1 :]))
            elif there >= 0:
                yield f"go {side}", (there, lies, doors)
        if lies == room:
            yield f"take {house.thing}", (room, carried, doors)
        if lies == carried:
            yield f"drop {house.thing}", (room, room, doors)
            if room == house.goal:
                yield f"{house.verb} {house.thing}", None
        yield f"look at {ROOMS[house.rooms[room]]}", (room, lies, doors)

    def _text(self, place: Place, commands: list[str], partial: bool) -> str:
        room, lies, _ = place
        house = self.house
        parts = [f"you are in the {house.rooms[room]}"]
        if lies == len(house.rooms):
            parts.append(f"you carry the {house.thing}")
        elif lies == room:
            parts.append(f"the {house.thing} is here")
        elif not partial:
            parts.append(f"the {house.thing} is in the {house.rooms[lies]}")
        return " ; ".join([*parts, f"you can {' / '.join(commands)}"])

    def rooms_of(self, state: WorldState) -> list[tuple[int, int]]:
        """Rooms where one is, and where the thing is, from the first on; see `Place`."""
        last = len(self._places)
        return [self._places[place][:2] for place in self.path(state) if place < last]

    def picture(self, state: WorldState) -> np.ndarray | None:
        """The house, where the thing is, the way that was gone, and where one is.

        None of a partial one until all is over: whoever plays is not told where it began.
        """
        if self.observation == "partial" and not state.over:
            return None
        house, gone = self.house, self.rooms_of(state)
        sheet = GridPicture(*GRID, "#ffffff", 3 * CELL, 2 * CELL)
        for room, (ways, doors) in enumerate(zip(house.ways, house.doors)):
            for there, door in zip(ways, doors):
                if there > room:
                    colour = "#c8503c" if door >= 0 else "#aab2c0"
                    sheet.way(house.cells[room], house.cells[there], colour)
        for room, cell in enumerate(house.cells):
            colour = "#bfe5c8" if room == house.goal else "#e8ebf1"
            lies = f" ({house.thing})" if gone[-1][1] == room else ""
            sheet.cell(cell, colour, 8, house.rooms[room] + lies)
        return sheet.drawn([house.cells[room] for room, _ in gone])
