"""Reviews of what users do to gangs that exist: each is a row of the decision log.

Which users may do it is decided in `webhook.guard` and `policy.queues`.

    cancel_reviews  deletions: which user cancelled which gang, and why
    hold_reviews   changes of a hold: the pod states who holds its gang
    named_gangs    finds the pods of a gang by its name, or by that of one of its pods
    swap_reviews   swaps of two gangs: the pod states who asked for it, and with which gang
    user_reviews   all of them
"""
