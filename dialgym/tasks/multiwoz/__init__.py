"""Multi-domain dialogues about a city: find, ask about and book, as in MultiWOZ and ConvLab."""
