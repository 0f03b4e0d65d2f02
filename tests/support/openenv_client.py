"""Dialogues at a server of OpenEnv, by its own client."""

from openenv.core import GenericEnvClient

from dialgym.testing.agreement import lines_of, played


async def play_openenv(url, texts, **reset):
    """The record of a dialogue at a server, up to its end or that of the texts."""
    async with GenericEnvClient(base_url=url) as client:
        messages = list((await client.reset(**reset)).observation["messages"])
        opening, rewards, told = lines_of(messages), [], []
        for text in texts:
            result = await client.step({"text": text})
            rewards.append(result.reward)
            told.append(result.observation["metadata"])
            messages += [{"role": "assistant", "content": text}, *result.observation["messages"]]
            if result.done:
                break
    ends = told[-1]["terminated"], told[-1]["truncated"]
    assert result.done == any(ends)
    components = [each["components"] for each in told]
    return played(opening, messages, rewards, None, components, ends, told[-1]["is_success"])
