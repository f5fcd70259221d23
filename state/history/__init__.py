"""Runs of gangs: what was asked, granted, waited for, run, and how it ended.

facts  The history of gangs: what was asked, granted, waited, run, where, how it ended. Pure.
runs   Questions about the history of gangs, answered from Postgres. What is stored: facts.py.
"""
