"""Worlds and arrivals for tests of the time machine.

worlds  Small worlds with policies given as text, arrivals, and how they fared
"""
