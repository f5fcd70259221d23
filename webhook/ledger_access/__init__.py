"""How reviews use the ledger: within a time budget, and without it when it is unavailable.

A slow or hung Postgres must never make a user wait longer than the budget. Nothing here decides.
Imported by `webhook.wiring` and by the other folders of `webhook`.

    time_budget   the time that one review has for everything that it awaits
    timed_ledger  the calls of the ledger, and whether a missing answer means an outage
    breaker       a circuit breaker: after a failure, reviews skip the ledger until it is back
    catch_up      charges what was admitted while the ledger was unavailable
    turns         reviews that would conflict in the ledger run one after the other
"""
