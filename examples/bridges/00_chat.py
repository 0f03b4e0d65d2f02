"""A dialogue as the messages of a language model: what lies under every door, without any extra."""

import dialgym

GUESSES = ("quiet", "crisp", "level", "habit", "usage", "power")


def model(messages: list, variant: int = 0) -> str:
    """A stand-in for a language model: messages in, a text out."""
    turn = sum(message["role"] == "assistant" for message in messages)
    return GUESSES[(turn + variant) % len(GUESSES)]


chat = dialgym.Chat("Wordle-20-v0")
chat.reset(seed=3)
reply = None
while reply is None or not reply.over:
    reply = chat.step(model(chat.messages))
for place, message in enumerate(chat.messages):
    said = "  <- said by the model" if place in chat.said else ""
    print(f"{message['role']}: {message['content']}{said}")

group = dialgym.ChatBatch("Wordle-20-v0", 4)  # as of GRPO: four dialogues with one secret
group.reset([3] * 4)
returns = [0.0] * 4
while group.open:
    texts = {row: model(group.messages[row], variant=row) for row in group.open}
    for row, reply in group.step(texts).items():
        returns[row] += reply.reward
print("returns of the group:", returns)
