"""Language models of `transformers` that chat: what they read, and which are refused."""

import json

import pytest
import torch
import transformers
from tokenizers.processors import TemplateProcessing

from agents import ChatAgent
from agents.chat.language_model import CausalTalker, messages
from agents.decoding.replies import Turn
from tests.agents.models.test_pretrained import PIECES, save_model, save_tokenizer


def reference_reply(lm, tokenizer, text, most):
    """Greedy, and read from the start at every token."""
    ids = tokenizer(text).input_ids
    said = []
    while len(said) < most:
        with torch.no_grad():
            logits = lm(torch.tensor([ids + said])).logits[0, -1, : len(tokenizer)]
        token = int(logits.argmax())
        if token == tokenizer.eos_token_id:
            break
        said.append(token)
    return tokenizer.decode(said, skip_special_tokens=True).strip()


@pytest.mark.parametrize("model_type", ["gpt2", "llama"])
def test_a_language_model_goes_on_with_tagged_lines(model_type, tmp_path):
    lm = save_model(tmp_path, model_type, tie=False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    agent = ChatAgent.load(str(tmp_path), max_tokens=6)
    text = "user: ab\nsystem: a b\nuser: c d\nsystem:"
    expected = reference_reply(lm, tokenizer, text, 6)
    said = agent.chat("c d", ["ab", "a b"], deterministic=True)
    assert said == expected
    drawn = {agent.chat("c d", seed=seed) for seed in range(5)}
    assert len(drawn) > 1
    assert agent.chat("c d", seed=2) == agent.chat("c d", seed=2)


def test_an_end_that_a_tokenizer_writes_behind_each_text_is_not_read(tmp_path):
    lm, tokenizer = save_model(tmp_path, "gpt2", tie=False), save_tokenizer(tmp_path)
    plain = tokenizer("user: ab\nsystem:").input_ids
    end = tokenizer.eos_token
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"$A {end}", special_tokens=[(end, tokenizer.eos_token_id)]
    )
    assert tokenizer("ab").input_ids[-1] == tokenizer.eos_token_id
    assert CausalTalker(lm, tokenizer)._written([Turn(own=False, text="ab")]) == plain


WITHOUT_CACHE = {
    "mamba": {"hidden_size": 16, "num_hidden_layers": 1, "state_size": 4},
    "openai-gpt": {"n_embd": 16, "n_layer": 1, "n_head": 2},
}


@pytest.mark.parametrize("model_type", WITHOUT_CACHE)
def test_a_language_model_without_keys_and_values_reads_all_again(model_type, tmp_path):
    sizes = {"vocab_size": len(PIECES), "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(model_type, **sizes, **WITHOUT_CACHE[model_type])
    lm = transformers.AutoModelForCausalLM.from_config(config).eval()
    for weight in lm.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    lm.save_pretrained(tmp_path)
    tokenizer = save_tokenizer(tmp_path)
    expected = reference_reply(lm, tokenizer, "user: c d\nsystem:", 6)
    said = ChatAgent.load(str(tmp_path), max_tokens=6).chat("c d", deterministic=True)
    assert said == expected != ""


TEMPLATE = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{{ 'us er ' if m.role == 'user' else 'system ' }}{{ m.content }} {% endfor %}"
    "{% if add_generation_prompt %}long{% endif %}"
)


def test_a_chat_template_is_used_where_there_is_one(tmp_path):
    lm = save_model(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(tmp_path)
    agent = ChatAgent.load(tmp_path, max_tokens=5)
    expected = reference_reply(lm, tokenizer, "us er ab system a us er c d long", 5)
    assert agent.chat("c d", ["ab", "a"], deterministic=True) == expected
    opened = reference_reply(lm, tokenizer, "us er system a us er c long", 5)
    assert agent.chat("c", ["a"], deterministic=True) == opened


def test_the_end_of_a_turn_in_the_template_ends_a_reply(tmp_path):
    save_model(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    own = {tokenizer.eos_token_id}
    assert CausalTalker.load(str(tmp_path)).ends == own
    tokenizer.add_tokens([transformers.AddedToken("<|end|>", special=True)])
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}<|end|>{% endfor %}"
    tokenizer.save_pretrained(tmp_path)
    ends = own | {tokenizer.convert_tokens_to_ids("<|end|>")}
    assert CausalTalker.load(str(tmp_path)).ends == ends
    tokenizer.chat_template = "{{ raise_exception('no chat') }}"
    tokenizer.save_pretrained(tmp_path)
    assert CausalTalker.load(str(tmp_path)).ends == own


def test_messages_alternate_and_begin_with_the_user():
    turns = [Turn(True, "a"), Turn(False, "b"), Turn(False, "c"), Turn(True, "d")]
    found = [(message["role"], message["content"]) for message in messages(turns)]
    assert found == [("user", ""), ("assistant", "a"), ("user", "b\nc"), ("assistant", "d")]


def test_a_language_models_window_drops_the_oldest(tmp_path):
    save_model(tmp_path, n_positions=24)
    talker = CausalTalker.load(str(tmp_path))
    turns = [Turn(i % 2 == 1, "a b c d") for i in range(9)]
    ids = talker._prompt(turns, 20)
    shorter = [talker._written(turns[i:]) for i in range(9)]
    assert ids == max((w for w in shorter if len(w) <= 20), key=len)
    assert len(ids) > 8
    assert isinstance(ChatAgent(talker).chat("a", ["b c d"] * 20, seed=0), str)
    with pytest.raises(ValueError, match=r"the last utterance has \d+ tokens, the window has room"):
        ChatAgent(talker).chat("a b c d " * 9)


def test_a_chat_template_that_fails_says_so(tmp_path):
    save_model(tmp_path)
    talker = CausalTalker.load(str(tmp_path))
    for template in ("{% if %}", "{{ messages[9].content.x }}", "{{ raise_exception('no') }}"):
        talker.tokenizer.chat_template = template
        with pytest.raises(ValueError, match="the chat template of the tokenizer fails"):
            ChatAgent(talker).chat("a b")


def test_files_of_a_language_model_that_are_not_there_or_damaged(tmp_path):
    save_model(tmp_path)
    for file in tmp_path.glob("*token*"):
        file.unlink()
    with pytest.raises(ValueError, match=r"chat: .* tokenizer"):
        ChatAgent.load(tmp_path)
    save_model(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"x" * 50)
    with pytest.raises(ValueError, match="cannot be read by AutoModelForCausalLM"):
        ChatAgent.load(tmp_path)


def test_bad_language_models_are_one_clear_error(tmp_path):
    save_model(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    classifier = {**config, "architectures": ["GPT2ForSequenceClassification"]}
    (tmp_path / "config.json").write_text(json.dumps(classifier))
    with pytest.raises(ValueError, match="holds a GPT2ForSequenceClassification, which says"):
        ChatAgent.load(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match=r"chat: no model at .*expected a saved agent, or a"):
        ChatAgent.load(tmp_path)
    lm = transformers.AutoModelForCausalLM.from_config(
        transformers.GPT2Config(vocab_size=6, n_layer=1, n_embd=8, n_head=1)
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert len(tokenizer) == len(PIECES)
    with pytest.raises(ValueError, match="got one with 11 tokens for a model that knows 6"):
        CausalTalker(lm, tokenizer)
