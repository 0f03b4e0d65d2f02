"""Golden transcripts: what was said, its token ids and rewards, one file for each id.

Record them anew, after a change that is meant, with ``python -m tests.golden.recording``.
"""

from pathlib import Path

import gymnasium as gym
import numpy as np

import dialgym

FOLDER = Path(__file__).parent / "transcripts"
GAMES = 4
SPEAKER = "random-mixture"


def path_of(env_id: str) -> Path:
    """The file of an id."""
    return FOLDER / f"{env_id.removeprefix('dialgym/')}.txt"


def record(env_id: str) -> str:
    """Some games of a fixed policy with fixed seeds, a line for each thing said."""
    env = gym.make(env_id).unwrapped
    speaker = env.task.speaker_named("system", SPEAKER)
    lines = [f"# {env_id}, {SPEAKER}, seeds 0-{GAMES - 1}; written by tests/golden/recording.py"]
    for seed in range(GAMES):
        lines += [f"game {seed}", *play(env, speaker, seed)]
    return "\n".join(lines) + "\n"


def play(env, speaker, seed: int) -> list[str]:
    """One game through the env's own view."""
    env.reset(seed=seed)
    words = np.random.default_rng([seed, 1])
    lines, over = [], False
    while not over:
        text = speaker.reply(env.task, env.dialogue.state, words)
        observation, reward, terminated, truncated, info = say(env, text)
        lines.append(f"  {text} -> {info['reply']} | reward {reward:g} turn {info['turn']}")
        over = terminated or truncated
    lines.append(f"  success {info['is_success']} terminated {terminated}")
    if not isinstance(observation, str):
        lines.append("  tokens " + " ".join(map(str, observation[observation > 0])))
    return lines


def say(env, text: str):
    """An utterance, token by token where the env wants tokens."""
    if isinstance(env.action_space, gym.spaces.Text):
        return env.step(text)
    for token in [*env.tokenizer.encode(text), 1]:
        result = env.step(token)
    return result


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for env_id in dialgym.list_ids():
        path_of(env_id).write_text(record(env_id))
