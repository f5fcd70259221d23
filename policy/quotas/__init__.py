"""Quotas and limits of groups and users.

admission  What rules and quotas decide together about one gang, and how it is told to people.
limits     Limits on what is held: whose holdings, of what, and how much at most.
quotas     Quotas: how much a group, and each user within it, may hold.
wording    Limits in words: who holds what, what was asked for, what the limit is, what …
"""
