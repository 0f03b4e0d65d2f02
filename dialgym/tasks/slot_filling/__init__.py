"""Slot filling: find a row of a database for a user who is heard through noise."""
