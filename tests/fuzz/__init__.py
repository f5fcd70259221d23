"""Hostile input, as much of it as one likes."""
