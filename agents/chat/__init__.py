"""Agents and language models to talk to, at the terminal and in code."""
