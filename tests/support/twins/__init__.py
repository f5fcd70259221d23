"""Fast twins of what `state` keeps in PostgreSQL, in memory, for tests and benchmarks.

`tests/contract` holds each twin to the same answers as PostgreSQL. No product code imports them.

    ledger       the ledger
    ages         the ages of gangs that were reclaimed
    sums         sums over charges
    comparisons  comparisons of charges
    usage        usage in memory beside the ledger
    log          the decision log
    history      the history of gangs
    promises     the promise ledger
    past         admissions and charges of the last day
    outlook      when gangs that are submitted now would start
    seen_nodes   the nodes that were seen lately
"""
