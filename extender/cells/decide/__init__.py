"""From a request to a decision, and from a decision to a changed state.

applier   Decisions made true: all of one or nothing.
decider   From a request to a decision. Changes nothing: what is tried is undone.
reasons   Why a gang cannot start now: the first of the reasons that is true.
refusals  Requests that can never be served, and why.
validity  Whether a decision still holds: everything that it was planned on is looked at …
"""
