"""verl's door against the library where it is installed, and else against its stand-in."""

import asyncio

import pytest

pytest.importorskip("transformers", reason="needs the extra `agents`")

from dialgym.bridges import verl
from tests.doors.token_record import END, TOKENIZER, sampled
from tests.doors.verl_player import SAMPLING, Scripted, rollout
from tests.support.chat_templates import tokenizer_with

ID, WORDS = "Wordle-20-v0", ("quiet", "crisp", "level", "habit", "usage", "power")


def row_of(seed=1, **settings):
    return verl.rows(ID, 1, seed=seed, **settings)[0]


def test_members_of_a_group_start_alike_and_rows_do_not():
    first, second = verl.rows(ID, 2)
    outputs = [rollout(row, Scripted(sampled(WORDS))) for row in (first, first, second)]
    told = [(each.response_ids, each.extra_fields["turn_scores"]) for each in outputs]
    assert told[0] == told[1] != told[2]


def test_a_session_is_asked_for_what_follows_all_that_was_said():
    server = Scripted(sampled(WORDS))
    output = rollout(row_of(), server, max_new_tokens=40)
    requests, prefixes, sampling = zip(*server.asked)
    assert len({*requests}) == 1  # of one session, so that its cache is found again
    assert all(given == {**SAMPLING, "logprobs": True, "max_tokens": 40} for given in sampling)
    whole = output.prompt_ids + output.response_ids
    assert all(whole[: len(prefix)] == prefix for prefix in prefixes)
    assert prefixes[0] == output.prompt_ids


def test_a_response_that_may_be_no_longer_ends_there_truncated():
    output = rollout(row_of(), Scripted(sampled(WORDS)), response_length=30)
    assert len(output.response_ids) <= 30
    assert output.extra_fields["reward_extra_info"]["truncated"] == 1.0
    assert output.reward_score == sum(output.extra_fields["turn_scores"])


def test_a_prompt_that_verl_would_cut_is_refused():
    with pytest.raises(ValueError, match=r"prompt_length=9.*data.max_prompt_length"):
        rollout(row_of(), Scripted(sampled(WORDS)), prompt_length=9)
    with pytest.raises(ValueError, match="'env_id' among its columns"):
        rollout({"seed": 1}, Scripted(sampled(WORDS)))


@pytest.mark.parametrize("aborted", [False, True])
def test_log_probabilities_are_told_where_they_are_wanted(aborted):
    """In a batch of verl all members have them, or none has: also one of which nothing was said."""

    class Aborting(Scripted):
        async def generate(self, request_id, **asked):
            answer = await super().generate(request_id, **asked)
            if aborted:
                answer.token_ids, answer.log_probs, answer.stop_reason = [], None, "aborted"
            return answer

    told = [rollout(row_of(), Aborting(sampled(WORDS)), logprobs=wish) for wish in (True, False)]
    assert len(told[0].response_logprobs) == len(told[0].response_ids)
    assert told[1].response_logprobs is None


def test_rows_have_indices_of_their_own():
    assert [row["extra_info"] for row in verl.rows(ID, 2, seed=3)] == [{"index": 3}, {"index": 4}]


def test_steps_of_the_weights_are_those_of_the_first_and_of_the_last_turn():
    server = Scripted(sampled(WORDS))
    fields = rollout(row_of(), server).extra_fields
    steps = fields["min_global_steps"], fields["max_global_steps"]
    assert steps == (1, len(server.asked))
    assert len(server.asked) > 1


def test_arguments_of_the_chat_template_reach_it():
    tokenizer = tokenizer_with("chatml")
    tokenizer.chat_template = "{{ note }}" + tokenizer.chat_template
    data = {"apply_chat_template_kwargs": {"note": "Noted."}}
    output = rollout(row_of(), Scripted(sampled(WORDS)), tokenizer=tokenizer, data=data)
    assert tokenizer.decode(output.prompt_ids).startswith("Noted.<|im_start|>system")


def test_rows_survive_parquet(tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs the extra `data`")
    rows = verl.rows(ID, 2) + verl.rows(ID, 1, turns=3)
    datasets.Dataset.from_list(rows).to_parquet(tmp_path / "rows.parquet")
    read = datasets.Dataset.from_parquet(str(tmp_path / "rows.parquet"), cache_dir=str(tmp_path))
    outputs = [rollout(row, Scripted(sampled(["wrong"] * 6))) for row in read]
    assert [len(each.extra_fields["turn_scores"]) for each in outputs] == [6, 6, 3]


def test_verl_makes_the_loop_and_takes_its_output():
    """By its own configuration, and as the tensors of its trainer."""
    pytest.importorskip("verl", reason="verl is not installed")
    import hydra
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap, ToolListWrap

    lengths = {"response_length": 500, "prompt_length": 5000}
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": lengths}, "data": {}})
    loop = hydra.utils.instantiate(
        config=OmegaConf.create({"_target_": "dialgym.bridges.verl.DialogueLoop"}),
        trainer_config=DictConfigWrap(config=config),
        server_manager=Scripted(sampled(WORDS)),
        tokenizer=TOKENIZER,
        processor=None,
        hf_model_type=None,
        dataset_cls=None,
        data_config=DictConfigWrap(config.data),
        tools=ToolListWrap([]),
    )
    output = asyncio.run(loop.run({**SAMPLING, "logprobs": True}, **row_of()))
    tensors = output.as_dict()
    assert tensors["rm_scores"].sum().item() == output.reward_score
    assert tensors["response_mask"].sum().item() == sum(output.response_mask)
    assert tensors["rollout_log_probs"].shape == tensors["responses"].shape
    assert output.response_ids.count(END) >= 1


def test_ids_after_the_end_of_a_turn_are_not_said():
    """A server that does not know the end of the template goes on in the user's name."""
    further = TOKENIZER("x<|im_start|>user", split_special_tokens=True)["input_ids"]
    ended = [[*TOKENIZER(word)["input_ids"], END] for word in WORDS]
    outputs = [
        rollout(row_of(), Scripted(turns)) for turns in (ended, [[*ids, *further] for ids in ended])
    ]
    assert outputs[0].response_ids == outputs[1].response_ids
    assert outputs[0].response_logprobs == outputs[1].response_logprobs
    assert outputs[0].reward_score == outputs[1].reward_score


@pytest.mark.parametrize("turns", [0, 1])
def test_a_turn_that_the_server_aborts_is_not_said(turns):
    class Aborting(Scripted):
        async def generate(self, request_id, **asked):
            answer = await super().generate(request_id, **asked)
            if len(self.asked) > turns:
                answer.token_ids, answer.log_probs, answer.stop_reason = [], None, "aborted"
            return answer

    output = rollout(row_of(), Aborting(sampled(WORDS)))
    assert len(output.extra_fields["turn_scores"]) == turns
    assert output.extra_fields["reward_extra_info"]["truncated"] == 1.0
    assert len(output.response_logprobs) == len(output.response_ids)  # as those of its batch
    assert (output.response_ids == []) == (turns == 0)
