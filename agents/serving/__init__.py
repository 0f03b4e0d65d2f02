"""Rollouts whose utterances an inference server samples."""
