"""The player of SkyRL-Gym's door, by a row of its training data."""

import skyrl_gym

from dialgym.bridges import skyrl
from dialgym.testing.agreement import lines_of, played


def play(env_id, settings, seed, texts):
    """Play the texts in a new environment; closing words are in the metadata."""
    (row,) = skyrl.rows(env_id, 1, seed=seed, **settings)
    env = skyrl_gym.make(skyrl.register(), extras=row)
    messages, _ = env.init(row["prompt"])
    opening, results = lines_of(messages), []
    for text in texts:
        results.append(env.step(text))
        messages += [{"role": "assistant", "content": text}, *results[-1]["observations"]]
    told = [result["metadata"] for result in results]
    if results[-1]["done"] and told[-1]["text"]:
        messages.append({"role": "user", "content": told[-1]["text"]})
    return played(
        opening,
        messages,
        [result["reward"] for result in results],
        None,
        [each["components"] for each in told],
        (told[-1]["terminated"], told[-1]["truncated"]),
        env.get_metrics()["success"] == 1.0,
    )
