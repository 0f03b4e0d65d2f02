"""The player of verl's door: its agent loop, and a server that says the texts."""

import asyncio
from types import SimpleNamespace

from dialgym.bridges import verl
from tests.doors.stand_ins import standing_in
from tests.doors.token_record import TOKENIZER, record_of_tokens, sampled

LENGTH = 10**6


SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0}
"""As verl's worker gives them, beside ``logprobs``, which are ``rollout.calculate_log_probs``."""


class Scripted:
    """A server that says turns one after the other, in the form of verl's ``LLMServerClient``."""

    def __init__(self, turns):
        self.turns, self.asked = iter(turns), []

    async def generate(self, request_id, *, prompt_ids, sampling_params, **others):
        from verl.workers.rollout.replica import TokenOutput

        self.asked.append((request_id, prompt_ids, sampling_params))
        ids = next(self.turns)
        steps = {"min_global_steps": len(self.asked), "max_global_steps": len(self.asked)}
        chances = [-1.0] * len(ids) if sampling_params["logprobs"] else None
        return TokenOutput(token_ids=ids, log_probs=chances, extra_fields=steps)


def loop_of(
    server, response_length=LENGTH, prompt_length=LENGTH, tokenizer=TOKENIZER, data=(), **settings
):
    """An agent loop, made with the arguments that verl's worker gives."""
    lengths = SimpleNamespace(response_length=response_length, prompt_length=prompt_length)
    config = SimpleNamespace(actor_rollout_ref=SimpleNamespace(rollout=lengths))
    return verl.DialogueLoop(
        trainer_config=SimpleNamespace(config=config),
        server_manager=server,
        tokenizer=tokenizer,
        processor=None,
        hf_model_type=None,
        dataset_cls=None,
        data_config=SimpleNamespace(config=dict(data)),
        tools=None,
        **settings,
    )


def rollout(row, server, logprobs=True, **settings):
    """The output of a loop for a row."""
    sampling = {**SAMPLING, "logprobs": logprobs}
    with standing_in("verl"):
        return asyncio.run(loop_of(server, **settings).run(sampling, **row))


def play(env_id, settings, seed, texts):
    """Play the texts as a row of the training data."""
    (row,) = verl.rows(env_id, 1, seed=seed, **settings)
    output = rollout(row, Scripted(sampled(texts)))
    fields = output.extra_fields
    told = {
        "turn_rewards": fields["turn_scores"],
        "components": fields["turn_components"],
        "closing": fields["closing"],
        **fields["reward_extra_info"],
    }
    assert output.reward_score == sum(told["turn_rewards"])
    assert output.response_logprobs == [-float(own) for own in output.response_mask]
    masks = [0] * len(output.prompt_ids) + output.response_mask
    return record_of_tokens(row["prompt"], output.prompt_ids + output.response_ids, masks, told)
