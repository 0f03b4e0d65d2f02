"""Golden briefs: what each party is told in words, one file for each task and language.

Record them again, after a change that is meant, with ``python -m tests.golden.brief_recording``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.registry import entry_of, make_task

FOLDER = Path(__file__).parent / "briefs"
SEED = 0
BRIEFS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "wordle": ("Wordle-20-v0", {}),
    "wordle_hard": ("Wordle-v0", {"hard_mode": True, "invalid": "reject", "feedback": "ilql"}),
    "twenty_questions": ("TwentyQuestions-16-v0", {}),
    "bargain_items": ("Bargain-v0", {}),
    "bargain_goods": ("Bargain-Goods-v0", {}),
    "bargain_price": ("Bargain-Price-v0", {}),
    "car_dealer": ("CarDealer-v0", {}),
    "endgames": ("Endgames-Queen-v0", {}),
    "endgames_uci": ("Endgames-v0", {"notation": "uci", "shown": "fen"}),
    "service_desk": ("ServiceDesk-v0", {}),
    "service_desk_phone_english": ("ServiceDesk-Phone-English-v0", {}),
    "maze": ("Maze-v0", {}),
    "maze_partial": ("Maze-Partial-v0", {}),
    "text_nav": ("TextNav-v0", {}),
    "visual_dialogue": ("VisualDialogue-100-v0", {"penalty": "hard"}),
    "slot_filling": ("CamRestaurants-Env3-v0", {"language": "acts"}),
    "slot_filling_words": ("SlotFilling-v0", {"language": "words"}),
    "slot_filling_english": ("SlotFilling-v0", {"language": "english"}),
    "slot_filling_english_user": ("SlotFilling-v0", {"language": "english_user"}),
    "slot_filling_domains": ("SlotFilling-Domains-utterance-v0", {}),
    "multiwoz_words": ("MultiWOZ-v0", {"language": "words"}),
    "multiwoz_english": ("MultiWOZ-v0", {"language": "english", "error_rate": 0.1}),
    "daily_dialog": ("DailyDialog-v0", {}),
    "comments": ("Comments-v0", {"parent": False}),
    "logged": ("Logged-v0", {}),
}
"""By name, an id and settings of its task."""


def record(name: str) -> str:
    """The briefs of all parties in one dialogue."""
    env_id, settings = BRIEFS[name]
    task = make_task(entry_of(env_id), settings)
    state = task.initial(np.random.default_rng(SEED))
    lines = [f"# {env_id}, {settings}, seed {SEED}; written by tests/golden/brief_recording.py"]
    for party in task.parties:
        lines += [f"## {party}", task.brief(state, party)]
    return "\n\n".join(lines) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in BRIEFS:
        (FOLDER / f"{each}.txt").write_text(record(each))
