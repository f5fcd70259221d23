"""Unit tests of state/."""
