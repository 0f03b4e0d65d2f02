"""Stored dialogues."""
