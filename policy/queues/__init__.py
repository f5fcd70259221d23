"""The Queues document as types: in which order waiting gangs are planned, and by which bounds.

The one idea: every order is a *rank* in seconds of waiting. A gang's rank is the moment at which it
asked, minus what each factor is worth to it; the lowest rank is first. A factor is a number from 0
to 1, and its worth is the number of seconds that it gives at most. The *horizon* of a level is the
sum of its worth: a gang that asks later than another by more than the horizon is never ahead of it.

Ranks of actual gangs are computed in `extender.queue.order`; the document is read in
`policy.documents.queues_document`.

    alternatives  Other forms in which the owner of a gang lets it run.
    cancels     Cancelled gangs: who deleted them, and why.
    durations   Durations such as `4h`: reading and writing.
    factors     The factors: one table for checks, ranks and the reference.
    holds       Holds: gangs that users keep out of the queue.
    formula     A level's `formula`: CEL over the factors, giving seconds.
    moments     Times that users write, within the range that can be told.
    pools       Pools: the cells that waiting gangs compete for.
    queues      `Queues` and its parts; `DEFAULT_QUEUES` applies without a document.
    swaps       Swaps: two gangs exchange their places.
    unknown_groups  Groups that are named and have no quotas: warnings.
    who         Which gangs a level takes.
    windows     Advance reservations and maintenance windows.
"""
