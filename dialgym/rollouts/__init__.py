"""Playing dialogues, in one way for scores, datasets and the screen.

| module | what is in it |
|---|---|
| `episodes` | seeds of episodes and of policies |
| `policies` | what may stand for a policy, and how it is found |
| `random_text` | what the policy `random` says, and the checks of tasks |
| `played` | dialogues that were played, as columns |
| `games` | the loop of scripted policies, one dialogue at a time; trees of dialogues |
| `waves` | the loops of many dialogues at a time: scripted policies, and those with `predict` |
| `player` | `Player`: an environment and a policy, which picks the loop |
"""

from dialgym.rollouts.episode_batch import EpisodeBatch
from dialgym.rollouts.episodes import Job, Report, episode_seed, policy_rng
from dialgym.rollouts.player import Player, make_dialogue
from dialgym.rollouts.policies import IncompatiblePolicyError, Policy, Predictor

__all__ = [
    "EpisodeBatch",
    "IncompatiblePolicyError",
    "Job",
    "Player",
    "Policy",
    "Predictor",
    "Report",
    "episode_seed",
    "make_dialogue",
    "policy_rng",
]
