"""How fast the learners are, each beside a reference of its run: ``python -m agents.speed``."""
