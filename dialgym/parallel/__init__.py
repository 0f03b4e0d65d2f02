"""Batches of dialogues sharded over worker processes."""
