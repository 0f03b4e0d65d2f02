"""The player of TRL's door for tools: calls of the verb, as its trainer makes them."""

from dialgym.bridges import trl_tools
from dialgym.bridges.rows import rows_of
from dialgym.tasks.briefs import verb_of
from dialgym.testing.agreement import lines_of, played


def play(env_id, settings, seed, texts):
    """Play the texts; a tool's answers are the user's words."""
    dialogue = trl_tools.environment(env_id, **settings)()
    (row,) = rows_of(env_id, 1, seed=seed, **settings)
    dialogue.reset(**asking(dialogue, row))
    verb, argument = verb_of(dialogue.chat.task, dialogue.chat.learner)
    messages = [*row["prompt"]]
    for text in texts:
        heard = getattr(dialogue, verb)(**{argument: text})
        messages.append({"role": "assistant", "content": text})
        messages.append({"role": "user", "content": heard})
    closing, _, over = messages.pop()["content"].rpartition(trl_tools.OVER)
    assert over == ""
    if closing:
        messages.append({"role": "user", "content": closing.removesuffix("\n")})
    assert dialogue.get_reward() == sum(reply.reward for reply in dialogue.replies)
    last = dialogue.replies[-1]
    return played(
        lines_of(row["prompt"]),
        messages,
        [reply.reward for reply in dialogue.replies],
        None,
        [reply.components for reply in dialogue.replies],
        (last.terminated, last.truncated),
        bool(last.info["is_success"]),
    )


def asking(dialogue, row):
    """The row of `trl_tools.prompts`, which needs no library of data here."""
    brief, *others = row["prompt"]
    request = trl_tools.request_of(dialogue.chat.task, dialogue.chat.learner)
    return {**row, "prompt": [{**brief, "content": brief["content"] + request}, *others]}
