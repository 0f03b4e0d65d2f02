"""The player of SkyRL-Gym's door: an environment that its own package makes from a row."""

import skyrl_gym

from dialgym.bridges import skyrl
from dialgym.language.messages import Message
from dialgym.testing.agreement import lines_of, record_of
from dialgym.views.chat import ChatReply


def play(env_id, settings, seed, texts):
    (row,) = skyrl.rows(env_id, 1, seed, **settings)
    env = skyrl_gym.make(skyrl.register(), extras=row)
    messages, _ = env.init(row["prompt"])
    opening, said, replies = lines_of(messages), [], []
    for text in texts:
        result = env.step(text)
        told = result["metadata"]
        said.append(len(messages))
        messages = [*messages, Message(role="assistant", content=text), *result["observations"]]
        ends = told["terminated"], told["truncated"]
        assert result["done"] == any(ends)
        if result["done"] and told["text"]:
            messages = [*messages, Message(role="user", content=told["text"])]
        replies.append(ChatReply(told["text"], result["reward"], told["components"], *ends, told))
    return record_of(opening, messages, said, replies)
