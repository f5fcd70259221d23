"""Figures of a play over time."""
