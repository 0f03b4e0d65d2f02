"""Language models of transformers in this process, asked as a service is."""

import asyncio
import json
import pickle
import shutil

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers", reason="the extra agents")

import torch

import dialgym
from dialgym.io.chat_client import ChatClient
from dialgym.io.chat_service import CompletionRefusedError
from dialgym.io.model_settings import IN_PROCESS, ModelSettings
from dialgym.language.local_model import LocalModel, _Draws
from dialgym.language.model_text import without_reasoning
from dialgym.rewards import Reply
from dialgym.rewards.lm_judge import LanguageModelJudge
from tests.support.chat_templates import tokenizer_with

CHATS = [[{"role": "user", "content": "ab" * n}] for n in (1, 9, 4)]


SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 2048,
}
KINDS = {
    "gpt2": SIZES,
    "llama": SIZES,
    "mistral": {**SIZES, "num_key_value_heads": 1, "sliding_window": 8},  # forgets what it read
    "mamba": {"hidden_size": 16, "num_hidden_layers": 1, "state_size": 4},  # has no keys and values
    "rwkv": {"hidden_size": 16, "num_hidden_layers": 2},  # reads padding
}


def saved_model(path, kind):
    """Folder of a model of random weights that speaks characters."""
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = tokenizer_with("chatml")
    ids = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": None}
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, vocab_size=len(tokenizer), **KINDS[kind], **ids)
    AutoModelForCausalLM.from_config(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A GPT-2 of random weights that speaks characters."""
    return saved_model(tmp_path_factory.mktemp("model"), "gpt2")


def answers(folder, chats=CHATS, drawn=None, **settings):
    made = ModelSettings(folder, base_url=IN_PROCESS, **{"max_tokens": 12, **settings})
    client = ChatClient(made, service=LocalModel(made))
    seeds = range(len(chats)) if drawn is None else drawn

    async def ask():
        return await asyncio.gather(*map(client.complete, chats, seeds))

    return asyncio.run(ask()), client.usage


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0}, {"temperature": 0.7, "top_p": 0.5}])
def test_a_batch_says_what_each_says_alone(folder, sampling):
    together, usage = answers(folder, **sampling)
    alone = [answers(folder, [chat], [i], **sampling)[0][0] for i, chat in enumerate(CHATS)]
    assert together == alone
    assert len({answer.text for answer in together}) == 3
    assert usage.answer_tokens == sum(answer.answer_tokens for answer in together) > 0
    assert usage.prompt_tokens == sum(answer.prompt_tokens for answer in together)


@pytest.mark.parametrize("kind", KINDS)
def test_what_all_begin_with_is_read_once(kind, tmp_path, monkeypatch):
    from dialgym.language import local_model

    folder = saved_model(tmp_path, kind)
    brief = {"role": "system", "content": "You guess a word. " * 4}
    chats = [[brief, {"role": "user", "content": "ab" * n}] for n in (1, 9, 4, 4)]
    alone = [answers(folder, [chat], [i])[0][0] for i, chat in enumerate(chats)]
    batches, padded = [], local_model._padded
    monkeypatch.setattr(
        local_model,
        "_padded",
        lambda rows, n, pad: batches.append((len(rows), n)) or padded(rows, n, pad),
    )
    assert answers(folder, chats)[0] == alone
    assert sorted(rows for rows, _ in batches) == ([1, 1, 1, 1] if kind == "rwkv" else [4])
    assert (batches[0][1] > 70) == (kind in {"gpt2", "llama"})


def test_the_seed_chooses_the_words(folder):
    first, again, other = (answers(folder, CHATS[:1], [seed])[0] for seed in (3, 3, 4))
    assert first == again != other


def test_it_ends_at_its_end_or_at_the_most_tokens(folder):
    found = answers(folder, CHATS[:1] * 40, max_tokens=30)[0]
    assert {answer.finish_reason for answer in found} == {"stop", "length"}
    for answer in found:
        assert (answer.answer_tokens == 30) == (answer.finish_reason == "length")
        assert "<|im_end|>" not in answer.text


def test_the_end_of_a_turn_in_the_template_ends_an_answer(folder, tmp_path):
    unnamed = shutil.copytree(folder, tmp_path / "unnamed")
    tokenizer_with("chatml", named=False).save_pretrained(unnamed)
    for name in ("config.json", "generation_config.json"):
        settings = json.loads((unnamed / name).read_text())
        (unnamed / name).write_text(json.dumps({**settings, "eos_token_id": None}))
    found = answers(str(unnamed), CHATS[:1] * 40, max_tokens=30)[0]
    assert {answer.finish_reason for answer in found} == {"stop", "length"}


def test_a_thought_that_the_template_opens_is_told_as_one(folder, tmp_path):
    tokenizer = tokenizer_with("chatml")
    prompt = "<|im_start|>assistant\n"
    tokenizer.chat_template = tokenizer.chat_template.replace(prompt, f"{prompt}<think>\n")
    thinking = shutil.copytree(folder, tmp_path / "thinking")
    tokenizer.save_pretrained(thinking)
    (answer,), _ = answers(str(thinking), CHATS[:1])
    assert answer.text.startswith("<think>")
    assert without_reasoning(answer.text) == ""


def test_requests_that_come_later_are_the_next_batch(folder, monkeypatch):
    from dialgym.language import local_model

    sizes, write = [], local_model._Writer.write
    monkeypatch.setattr(
        local_model._Writer,
        "write",
        lambda self, batch: sizes.append(len(batch)) or write(self, batch),
    )
    answers(folder, CHATS * 4, concurrency=5)
    assert sum(sizes) == 12
    assert max(sizes) <= 5


def test_tokens_are_drawn_by_their_probabilities():
    logits = torch.tensor([[0.0, 1.0, 2.0, -torch.inf]])
    expected = torch.tensor([0.0, 1.0, 2.0]).div(0.5).softmax(-1)
    draws = _Draws([{"temperature": 0.5, "seed": seed} for seed in range(4000)])
    counts = draws(None, logits.repeat(4000, 1)).argmax(-1).bincount(minlength=4)
    assert counts[3] == 0
    assert np.abs(counts[:3].numpy() / 4000 - expected.numpy()).max() < 0.03
    nucleus = _Draws([{"temperature": 1.0, "top_p": 0.6, "seed": seed} for seed in range(200)])
    assert {*nucleus(None, logits.repeat(200, 1)).argmax(-1).tolist()} == {2}


def test_bad_requests_are_one_clear_error(folder, tmp_path):
    with pytest.raises(CompletionRefusedError, match=r"got top_k too\. Leave them out"):
        answers(folder, extra={"top_k": 3})
    with pytest.raises(CompletionRefusedError, match="more than the 2048 that"):
        answers(folder, [[{"role": "user", "content": "a" * 2100}]])
    with pytest.raises(ValueError, match=r"there is no file or folder '.*nowhere'"):
        answers(str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="or 'transformers' for a model in this process"):
        ModelSettings("m", base_url="here")


def test_a_pickled_copy_begins_without_requests(folder):
    copy = pickle.loads(pickle.dumps(LocalModel(ModelSettings(folder, base_url=IN_PROCESS))))
    assert copy.settings.in_process


def test_it_plays_either_party_and_is_recorded(folder, tmp_path):
    lm = {"model": folder, "base_url": IN_PROCESS, "max_tokens": 8}
    made = {"simulator": {"lm": {**lm, "record": str(tmp_path / "tape")}}, "language": "english"}
    result = dialgym.evaluate("handcrafted", "SlotFilling-v0", 3, [0], made)
    assert result.usage["requests"] > 3
    assert result.models["simulator"]["host"] == IN_PROCESS
    made["simulator"] = {"lm": {**lm, "replay": str(tmp_path / "tape")}}
    again = dialgym.evaluate("handcrafted", "SlotFilling-v0", 3, [0], made)
    assert again["SlotFilling-v0"].returns.tolist() == result["SlotFilling-v0"].returns.tolist()
    player = {"name": f"openai:{folder}", "base_url": IN_PROCESS, "max_tokens": 8}
    assert dialgym.evaluate(player, "Wordle-20-v0", 2, [0]).usage["requests"] > 2


def test_a_model_in_this_process_judges(folder, tmp_path):
    made = {"model": folder, "base_url": IN_PROCESS, "max_tokens": 8, "tries": 2, "default": 0.5}
    judge = LanguageModelJudge(**made, record=str(tmp_path / "judge.tape"))
    assert judge.score([Reply("hello"), Reply("bye")]).tolist() == [0.5, 0.5]
    assert judge.client.usage.unscored == 4  # it knows nothing of scores
    assert judge.client.usage.defaulted == 2
