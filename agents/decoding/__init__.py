"""From logits to tokens and utterances: sampling, batched generation, beam search, ranking."""
