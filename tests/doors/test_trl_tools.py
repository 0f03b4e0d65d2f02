"""TRL's door for tools against its trainer: the tool loop, masks, and rewards of groups."""

import json
from pathlib import Path

import pytest

import dialgym
from dialgym.bridges import trl_tools as door

trl = pytest.importorskip("trl", reason="needs the extra `trl`")
torch = pytest.importorskip("torch", reason="needs the extra `agents`")

import tokenizers  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402

from tests.doors.tiny_model import model_of  # noqa: E402

ID = "Wordle-20-v0"
TEMPLATE = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"
WORDS = ("quiet", "crisp", "level", "habit", "usage", "power")
LEAVES = 3
"""The member of each group that calls no tool."""


def qwen_tokenizer():
    """A tokenizer of characters with the chat template of Qwen 3, which TRL knows."""
    special = ["<|im_start|>", "<|im_end|>", "<pad>"]
    letters = [*special, *map(chr, range(32, 127)), "\n"]
    vocabulary = {letter: number for number, letter in enumerate(letters)}
    core = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    core.decoder = tokenizers.decoders.Fuse()
    core.add_special_tokens(special)
    made = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|im_end|>", pad_token="<pad>", bos_token="<|im_start|>"
    )
    made.chat_template = TEMPLATE.read_text("utf-8")
    return made


class Player:
    """Says turns in the place of a model: calls of the tool, a word after the other."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, prompt_ids, images, multimodal_fields, num_generations, **others):
        said = [self.turn(row, self.tokenizer.decode(ids)) for row, ids in enumerate(prompt_ids)]
        return [self.tokenizer(f"{text}<|im_end|>")["input_ids"] for text in said], None

    def turn(self, row, seen):
        heard = seen.partition("Begin.<|im_end|>")[2].count("<tool_response>")
        if door.OVER in seen or (heard == 0 and row % 4 == LEAVES):
            return "I am done."
        call = {"name": "guess", "arguments": {"word": WORDS[heard]}}
        return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


def trained(folder, monkeypatch, steps=2):
    """What a trainer has scored in some steps: rows, completions and environments of each."""
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    tokenizer, noted = qwen_tokenizer(), []

    def score(prompts, completions, environments, **columns):
        played = [[reply.reward for reply in each.replies] for each in environments]
        earned = [each.get_reward() for each in environments]
        noted.append((columns["seed"], completions, played, earned))
        return [0.0] * len(completions)

    args = trl.GRPOConfig(
        str(folder),
        max_steps=steps,
        num_generations=4,
        per_device_train_batch_size=8,
        max_completion_length=2000,
        chat_template_kwargs={"enable_thinking": False},
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
    )
    trainer = trl.GRPOTrainer(
        model_of(tokenizer, width=16, layers=1, positions=6000),
        score,
        args=args,
        train_dataset=door.prompts(ID, 4),
        processing_class=tokenizer,
        environment_factory=door.environment(ID),
    )
    trainer._generate_single_turn = Player(tokenizer)
    loop, masks = trainer._tool_call_loop, []

    def watched(*given):
        found = loop(*given)
        masks.extend(zip(found[0], found[2]))
        return found

    trainer._tool_call_loop = watched
    trainer.train()
    return tokenizer, noted, masks, trainer.state.log_history


def chat_of(seed):
    """Answers and rewards of the same words in a chat."""
    chat = dialgym.Chat(ID)
    chat.reset(seed)
    replies = [chat.step(WORDS[0])]
    while not replies[-1].over:
        replies.append(chat.step(WORDS[len(replies)]))
    return replies


def test_the_trainer_plays_the_dialogues_of_the_rules(tmp_path, monkeypatch):
    tokenizer, noted, masks, logs = trained(tmp_path, monkeypatch)
    assert len(noted) == 2
    returns = set()
    for seeds, completions, played, earned in noted:
        for row, (seed, messages) in enumerate(zip(seeds, completions)):
            if row % 4 == LEAVES:
                assert (played[row], earned[row]) == ([], -6.0)  # no better than to lose
                continue
            replies = chat_of(seed)
            heard = [message["content"] for message in messages if message["role"] == "tool"]
            assert heard[:-1] == [reply.text for reply in replies[:-1]]
            assert heard[-1] == f"{replies[-1].text}\n{door.OVER}".strip()
            assert played[row] == [reply.reward for reply in replies]
            assert earned[row] == sum(played[row])
            returns.add(earned[row])
    assert len(returns) > 1
    for mask, ids in masks:
        own = tokenizer.decode([token for token, said in zip(ids, mask) if said])
        others = tokenizer.decode([token for token, said in zip(ids, mask) if not said])
        assert "tool_response" not in own
        assert "tool_call" not in others
    assert logs[0]["rewards/WordleTool/mean"] < 0


def test_what_the_model_gets_wrong_is_told_and_costs_no_turn():
    dialogue = door.environment(ID)()
    dialogue.reset(**door.prompts(ID, 1)[0])
    with pytest.raises(TypeError, match="missing a required argument: 'word'"):
        dialogue.guess(letter="a")
    with pytest.raises(ValueError, match="expected a string; got 5"):
        dialogue.guess(word=5)
    assert dialogue.replies == []
    while door.OVER not in dialogue.guess("wrong"):
        pass
    with pytest.raises(ValueError, match="is over"):
        dialogue.guess("quiet")


def test_rows_of_other_settings_are_refused():
    dialogue = door.environment(ID)()
    with pytest.raises(ValueError, match=r"begins otherwise.*trl_tools.prompts"):
        dialogue.reset(**door.prompts(ID, 1, turns=3)[0])
