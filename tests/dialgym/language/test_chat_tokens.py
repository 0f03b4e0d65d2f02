"""Chats as token ids: nothing that was sampled is encoded again, and masks say who said what."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialgym.language.chat_tokens import ChatTokens, encode
from dialgym.language.model_text import without_reasoning

pytest.importorskip("transformers")

from tests.support.chat_templates import ENDS, PRESERVING, SPECIAL, TEMPLATES, tokenizer_with
from tests.support.spaced_tokenizers import KINDS, spaced

CHAT = [
    {"role": "system", "content": "Guess."},
    {"role": "user", "content": "Begin."},
    {"role": "assistant", "content": "crane"},
    {"role": "user", "content": "b y b b g"},
    {"role": "assistant", "content": "slate"},
    {"role": "user", "content": "g g g g g"},
]


def learned(tokenizer, encoded):
    """The learner's tokens as text."""
    return tokenizer.decode([i for i, own in zip(*encoded) if own])


@pytest.mark.parametrize("name", TEMPLATES)
def test_what_was_said_is_masked_exactly(name):
    tokenizer = tokenizer_with(name)
    encoded = encode(CHAT, tokenizer)
    assert learned(tokenizer, encoded) == "craneslate"
    assert len(encoded.ids) == len(encoded.is_learner)


@pytest.mark.parametrize("name", PRESERVING)
@pytest.mark.parametrize("length", [3, 5, 6])
def test_where_templates_keep_the_past_ids_are_those_of_the_whole_chat(name, length):
    tokenizer, chat = tokenizer_with(name), CHAT[:length]
    whole = chat
    if name == "no system":
        whole = [{"role": "user", "content": "Guess.\n\nBegin."}, *chat[2:]]
    text = tokenizer.apply_chat_template(whole, tokenize=False)
    assert encode(chat, tokenizer).ids == tokenizer(text, add_special_tokens=False)["input_ids"]


def test_a_template_that_leaves_the_brief_out_has_it_before_the_first_message():
    tokenizer = tokenizer_with("no system")
    refusing = ChatTokens(tokenizer, CHAT[:2]).ids
    tokenizer.chat_template = (
        "<bos>{% for m in messages if m.role != 'system' %}<|im_start|>{{ m.role }}\n"
        "{{ m.content }}<|im_end|>\n{% endfor %}{{ '<|im_start|>model\n' }}"
    )
    assert ChatTokens(tokenizer, CHAT[:2]).ids == refusing
    assert "Guess." in tokenizer.decode(refusing)


LINES = (
    "{% for m in messages %}{{ m.role }}:\n{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant:\n' }}{% endif %}"
)
COLONS = LINES.replace("}}:\n", "}}: ").replace(":\n' }}", ":' }}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("template", [LINES, COLONS])
def test_a_tokenizer_that_puts_spaces_puts_none_that_the_template_has_not(kind, template):
    tokenizer = spaced(kind)
    tokenizer.chat_template = template
    text = tokenizer.apply_chat_template(CHAT, tokenize=False)
    assert encode(CHAT, tokenizer).ids == tokenizer(text, add_special_tokens=False)["input_ids"]


def test_a_template_that_rewrites_the_past_cannot_reach_back():
    tokenizer = tokenizer_with("thinking")
    tokens = ChatTokens(tokenizer, CHAT[:2])
    before = []
    for k in (2, 4):
        tokens.say(tokens.text_ids(CHAT[k]["content"]))
        tokens.hear([CHAT[k + 1]])
        assert tokens.ids[: len(before)] == before
        before = [*tokens.ids]
    assert "<think>" not in tokenizer.decode(tokens.ids)


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_end_that_was_sampled_is_not_repeated_and_one_that_was_cut_is_added(name):
    tokenizer = tokenizer_with(name)
    end = tokenizer.convert_tokens_to_ids(ENDS.get(name, "<|im_end|>"))
    tracks = []
    for ended in (True, False):
        tokens = ChatTokens(tokenizer, CHAT[:2])
        ids = tokens.text_ids("crane")
        assert tokens.say([*ids, end] if ended else ids) == "crane"
        place = len(tokens.ids) - ended
        tokens.hear([CHAT[3]])
        assert tokens.ids[place] == end
        assert tokens.is_learner[place] is ended
        tracks.append(tokens.ids)
    assert tracks[0] == tracks[1]


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_turn_ends_by_the_token_that_the_template_puts_after_it(name):
    tokenizer = tokenizer_with(name)
    (end,) = {tokenizer.convert_tokens_to_ids(ENDS.get(name, "<|im_end|>"))}
    assert ChatTokens(tokenizer, CHAT[:2]).ends == [end]
    tokenizer.eos_token = "<eos>"
    assert ChatTokens(tokenizer, CHAT[:2]).ends[0] == end


def test_log_probabilities_and_turns_belong_to_the_learners_tokens():
    tokens = ChatTokens(tokenizer_with("chatml"), CHAT[:2])
    first = tokens.text_ids("crane")
    tokens.say(first, [-1.0, -2.0, -3.0, -4.0, -5.0])
    tokens.hear([CHAT[3]])
    tokens.say(tokens.text_ids("ab"), [-0.5, -0.25])
    tokens.end()
    ids, own, logprobs, turns = tokens.completion
    assert ids == tokens.ids[tokens.prompt_length :]
    assert ids[:5] == first
    assert [p for p, o in zip(logprobs, own) if o] == [-1, -2, -3, -4, -5, -0.5, -0.25]
    assert [t for t, o in zip(turns, own) if o] == [0] * 5 + [1] * 2
    assert {t for t, o in zip(turns, own) if not o} == {-1}
    assert {p for p, o in zip(logprobs, own) if not o} == {0.0}


def test_a_token_that_was_added_as_special_ends_a_turn():
    tokenizer = tokenizer_with("chatml", named=False)
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert end not in tokenizer.all_special_ids
    tokens = ChatTokens(tokenizer, CHAT[:2])
    assert tokens.ends == [end]
    tokens.say([*tokens.text_ids("crane"), end])
    tokens.hear([CHAT[3]])
    text = tokenizer.apply_chat_template(CHAT[:4], tokenize=False, add_generation_prompt=True)
    assert tokenizer.decode(tokens.ids) == text


def test_ids_that_no_encoding_gives_are_kept_as_they_were_sampled():
    tokenizer = tokenizer_with("chatml", merges=True)
    tokens = ChatTokens(tokenizer, CHAT[:2])
    odd = [tokenizer.convert_tokens_to_ids(c) for c in "abc"]
    assert tokens.text_ids("abc") != odd
    assert tokens.say(odd) == "abc"
    tokens.hear([CHAT[3]])
    assert tokens.completion.ids[:3] == odd


TEXTS = st.lists(st.sampled_from([*SPECIAL[:5], "ab", " ", "x\n", "<"]), max_size=4).map("".join)


@settings(max_examples=40, deadline=None)
@given(TEXTS, TEXTS, TEXTS, st.sampled_from([*TEMPLATES]))
def test_special_tokens_in_texts_are_text(brief, heard, said, name):
    tokenizer = tokenizer_with(name)
    plain = encode(CHAT[:4], tokenizer)
    chat = [
        {"role": "system", "content": brief},
        CHAT[1],
        {"role": "assistant", "content": said},
        {"role": "user", "content": heard},
    ]
    encoded = encode(chat, tokenizer)
    special = {*tokenizer.all_special_ids}
    kept = [i for i in encoded.ids if i in special]
    assert kept == [i for i in plain.ids if i in special]
    assert learned(tokenizer, encoded) == said


def test_where_a_tokenizer_cannot_read_them_as_text_they_are_refused():
    class Simple:
        all_special_tokens, all_special_ids = ("<end>",), (1,)
        chat_template = "yes"

        def apply_chat_template(self, messages, tokenize, add_generation_prompt):
            return "".join(m["content"] for m in messages)

        def __call__(self, text, add_special_tokens, split_special_tokens=False):
            return {"input_ids": [1] if text == "<end>" else [2] * len(text)}

    assert ChatTokens(Simple(), CHAT[:2]).ids
    with pytest.raises(ValueError, match="has said '<end>', a special token"):
        ChatTokens(Simple(), [CHAT[0], {"role": "user", "content": "so <end> it"}])


def test_refusals():
    tokenizer = tokenizer_with("no system")
    with pytest.raises(ValueError, match="refuses the chat: roles must alternate"):
        ChatTokens(tokenizer, [*CHAT[:2], CHAT[1]])
    tokenizer.chat_template = None
    with pytest.raises(ValueError, match="no chat template"):
        ChatTokens(tokenizer, CHAT[:2])
    with pytest.raises(ValueError, match="that the learner has said"):
        encode(CHAT[:2], tokenizer_with("chatml"))
    tokens = ChatTokens(tokenizer_with("chatml"), CHAT[:2])
    with pytest.raises(ValueError, match=r"it is the learner's turn. Call say\(\)"):
        tokens.hear([])
    with pytest.raises(ValueError, match="one for each of the 2 ids; got 1"):
        tokens.say([3, 4], [0.0])
    tokens.say([3])
    with pytest.raises(ValueError, match="not the learner's turn"):
        tokens.say([3])


def test_said_positions_leave_context_of_the_own_party_out():
    tokenizer = tokenizer_with("chatml")
    assert learned(tokenizer, encode(CHAT, tokenizer, said=(4,))) == "slate"


@pytest.mark.parametrize(
    ("opens", "read"),
    [("", "crane"), ("<think>\n", ""), ("<think>\n\n</think>\n\n", "crane")],
)
def test_a_thought_that_the_template_has_opened_is_not_said_where_it_is_cut(opens, read):
    tokenizer, prompt = tokenizer_with("chatml"), "<|im_start|>assistant\n"
    tokenizer.chat_template = TEMPLATES["chatml"].replace(prompt, prompt + opens)
    tokens = ChatTokens(tokenizer, CHAT[:2])
    assert without_reasoning(tokens.say(tokens.text_ids("crane"))) == read
    tokens.hear([CHAT[3]])
    assert without_reasoning(tokens.say(tokens.text_ids("so</think>slate"))) == "slate"
    assert tokenizer.decode(tokens.ids).endswith(f"{prompt}{opens}so</think>slate")
