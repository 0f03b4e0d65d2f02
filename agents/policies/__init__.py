"""What Stable-Baselines3 calls a policy: GPTs that act, value tokens, or say whole utterances."""
