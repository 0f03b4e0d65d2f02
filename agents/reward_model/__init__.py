"""Reward models: a language model with one output, learned from scores or preferences."""
