"""Rollouts and stored dialogues, as the sequences that updates read."""
