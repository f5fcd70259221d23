"""What a policy would have decided about the submissions of a past day. Pure.

The one idea: the day's gangs are submitted again in their order, to two policies, and each policy
charges and releases them by its own decisions. So a gang that the new policy lowers also holds less
in high classes when the next one comes. How long a gang holds its leaf cells is as recorded.

May be imported by `policy` and by every package above it.

    effect       How two plays of the same day differ, by user and class.
    gangs        The gangs of a day, from rows of the decision log and charges of the ledger.
    play         One play: submissions, charges, ends, gangs that wait for quota.
    sentences    The difference in words: the warnings of a dry run.
"""
