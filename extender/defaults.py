"""Defaults that the command line shows. Imports nothing that takes long to load."""

from typing import Final

HOLD_SECONDS: Final = 45
"""How long a binding is held until all members of its gang can be bound."""
