"""A panel that is trained in seconds."""

from dialgym.experiments import panel as room
from dialgym.experiments.panel import Panel

NETWORK = {"preset": "nano", "n_head": 2, "n_layer": 1, "n_embd": 16}
PPO = {"n_envs": 8, "n_steps": 16, "batch_size": 64, "n_epochs": 1, "policy_kwargs": NETWORK}
BC = {"batch_size": 16, "policy_kwargs": NETWORK}
VALUES = {
    "version": 1,
    "description": "Twenty words, for tests.",
    "environments": [
        {
            "id": "Wordle-20-v0",
            "goals": [{"word": "heard"}, {"word": "level"}],
        }
    ],
    "budget": {"tokens": 1000, "gradient_steps": 20},
    "data": {"policy": "mixture", "episodes": 60, "seed": 5},
    "algorithms": {
        "ppo": {"hyperparameters": PPO},
        "bc": {"hyperparameters": BC},
        "bc-ppo": {"algorithm": "ppo", "hyperparameters": PPO, "start": "bc"},
    },
    "evaluation": {"episodes": 24, "seed": 77, "trials": 4},
    "seeds": 2,
    "references": ["random", "optimal"],
}
TINY = Panel.of("tiny", VALUES)
WORDS = {**VALUES["environments"][0], "settings": {"tokenizer": "word"}}
BY_WORD = {**VALUES, "environments": [WORDS]}
QUICK = Panel.of("tiny", BY_WORD)
"""The same with utterances of a token, which are said in a third of the time."""


def install(monkeypatch=None, panel=TINY):
    """Let a panel be the only one; for the rest of the process where there is no fixture."""
    if monkeypatch is None:
        room._panels = lambda: {panel.name: panel}
    else:
        monkeypatch.setattr(room, "_panels", lambda: {panel.name: panel})
    return panel
