"""Small tokenizers with chat templates in the shapes of well-known families, written for tests."""

from transformers import PreTrainedTokenizerFast

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
HEADERS = (  # Llama 3
    "<bos>{% for m in messages %}<|head|>{{ m.role }}<|/head|>\n\n{{ m.content | trim }}<|eot|>"
    "{% endfor %}{% if add_generation_prompt %}<|head|>assistant<|/head|>\n\n{% endif %}"
)
NO_SYSTEM = (  # Gemma
    "<bos>{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}<|im_start|>"
    "{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content | trim }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>model\n{% endif %}"
)
THINKING = (  # Qwen 3: earlier turns lose what the last one has
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' and loop.last %}"
    "<think>\n\n</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
INSTRUCT = (  # Mistral
    "<bos>{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content }}<eos>"
    "{% elif m.role == 'system' %}[SYS]{{ m.content }}[/SYS]{% else %}[INST]{{ m.content }}[/INST]"
    "{% endif %}{% endfor %}"
)
CHANNELS = (  # gpt-oss
    "{% for m in messages %}<|im_start|>{{ m.role }}{% if m.role == 'assistant' %}<|channel|>final"
    "{% endif %}<|message|>{{ m.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant<|channel|>final<|message|>{% endif %}"
)
TEMPLATES = {
    "chatml": CHATML,
    "headers": HEADERS,
    "no system": NO_SYSTEM,
    "thinking": THINKING,
    "instruct": INSTRUCT,
    "channels": CHANNELS,
}
PRESERVING = ("chatml", "headers", "no system", "instruct", "channels")
"""Those that render an earlier turn as they did when it was the last."""
SPECIAL = (
    "<|im_start|>", "<|im_end|>", "<bos>", "<eos>", "<|head|>", "<|/head|>", "<|eot|>",
    "<|channel|>", "<|message|>", "<unk>", "<pad>",
)  # fmt: skip
ENDS = {"headers": "<|eot|>", "instruct": "<eos>"}
"""The token that ends a turn, where it is not ``<|im_end|>``."""


def tokenizer_with(
    template: str, merges: bool = False, named: bool = True
) -> PreTrainedTokenizerFast:
    """A tokenizer of characters, or of some pairs of them, with one of `TEMPLATES`.

    Its special tokens are `named` as such, or have been added as special and no more.
    """
    import tokenizers

    letters = [*SPECIAL, *map(chr, range(32, 127)), "\n"]
    pairs = [("a", "b"), ("b", "c")] if merges else []
    vocabulary = {t: i for i, t in enumerate([*letters, *map("".join, pairs)])}
    model = tokenizers.models.BPE(vocabulary, pairs, unk_token="<unk>")
    core = tokenizers.Tokenizer(model)
    core.decoder = tokenizers.decoders.Fuse()
    core.add_special_tokens([*SPECIAL])
    found = PreTrainedTokenizerFast(
        tokenizer_object=core,
        unk_token="<unk>",
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token=ENDS.get(template, "<|im_end|>") if named else None,
        additional_special_tokens=[*SPECIAL] if named else [],
    )
    found.chat_template = TEMPLATES[template]
    return found
