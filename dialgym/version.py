"""The version of dialgym."""

VERSION = "0.1.0"
