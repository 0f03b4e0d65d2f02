"""Learning from logged dialogues alone, one file an algorithm on one base."""
