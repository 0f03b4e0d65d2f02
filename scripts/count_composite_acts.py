"""Counts the combinations of acts that the rule system says; the most frequent become actions.

    python scripts/count_composite_acts.py

writes ``dialgym/tasks/multiwoz/composite_acts.txt``: one combination of the 209 acts a line, the
most frequent first, over dialogues with the agenda user in the built-in city.
"""

from collections import Counter
from pathlib import Path

import numpy as np

from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.multiwoz.dialogue import Rules
from dialgym.tasks.multiwoz.entries import SYSTEM_NAMES, system_numbers

TARGET = Path(__file__).parents[1] / "dialgym" / "tasks" / "multiwoz" / "composite_acts.txt"
DIALOGUES, KEPT = 20_000, 291
"""With the 209 acts themselves the most frequent 291 make 500 actions, as in ConvLab-2's DQN."""


def main() -> None:
    rules, counts = Rules(load_world("built-in")), Counter[tuple[int, ...]]()
    for seed in range(DIALOGUES):
        rng = np.random.default_rng(seed)
        state = rules.begin(rules.world.draw_goal(rng), rng)
        while not state.ended:
            rules.user_turn(state, rules.user.acts(state, rng), rng)
            if not state.ended:
                acts = rules.system.acts(state.belief, rng)
                rules.system_turn(state, acts, rng)
                counts[tuple(sorted(set(system_numbers(acts))))] += 1
    several = [(said, count) for said, count in counts.items() if len(said) > 1]
    several.sort(key=lambda pair: (-pair[1], pair[0]))
    kept = several[:KEPT]
    lines = [";".join(SYSTEM_NAMES[number] for number in said) for said, _ in kept]
    TARGET.write_text("\n".join(lines) + "\n", "utf-8")
    covered = sum(count for said, count in counts.items() if len(said) == 1)
    covered += sum(count for _, count in kept)
    print(f"{len(several)} combinations; the actions cover {covered / counts.total():.3f} of turns")


if __name__ == "__main__":
    main()
