"""A panel of replies that is scored on held-out dialogues and measured, in seconds."""

from dialgym.experiments.panel import Panel
from tests.support.tiny_panel import BC, PPO

MEASURES = ["judge", "meteor", "sacrebleu", "distinct2", "words"]
VALUES = {
    "version": 1,
    "description": "A few replies, for tests.",
    "environments": [
        {"id": "DailyDialog-v0", "measures": MEASURES, "settings": {"rewards": {"length": 1.0}}},
        {"id": "Comments-v0", "measures": ["judge", "words"]},
    ],
    "held_out": {"split": "test"},
    "budget": {"tokens": 200, "gradient_steps": 3},
    "data": {"policy": "random", "episodes": 20},
    "algorithms": {
        "bc": {"hyperparameters": BC},
        "bc-ppo": {"algorithm": "ppo", "hyperparameters": PPO, "start": "bc"},
    },
    "evaluation": {"episodes": 12, "seed": 77},
    "seeds": 2,
    "references": ["random"],
    "metric": "return",
}
TINY = Panel.of("replies", VALUES)
