"""Worlds and arrivals for tests of the time machine.

tuned_days  Days of gangs that waited, and documents that are tried
worlds      Small worlds with policies given as text, arrivals, and how they fared
"""
