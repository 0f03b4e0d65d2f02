"""What learning while talking and learning from logs share."""
