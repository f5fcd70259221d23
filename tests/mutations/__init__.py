"""The tests tested: the engine is broken on purpose, and a named test must fail.

`python -m tests.mutations` lists what is broken and what notices it.
"""
