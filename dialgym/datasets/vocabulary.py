"""Which tokenizer token ids are of."""

import hashlib

from dialgym.language import Tokenizer


def fingerprint(tokenizer: Tokenizer) -> str:
    """Short name of a vocabulary: equal for tokenizers with the same tokens at the same ids."""
    text = "\n".join(tokenizer.tokens)
    return f"{tokenizer.vocab_size}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
