"""Which gangs must end or be downgraded so that a guaranteed gang can start.

`decide` uses this package. It chooses victims and ends none: the decision names them, and the
caller ends their pods. An opportunistic gang never preempts.

The one idea: a set of victims counts only if it was tried. Inside `what_if()` the victims are
removed and the gang is fitted with the same code as always. Since whole gangs end and a gang may be
on many nodes, the least harmful set is a set cover. So estimates come first: rankings of bins by
the damage of clearing them, and upper bounds that rule out most sets without a trial.

    cheapest_bins      Greedy set cover: clears the bin with the least damage, one after the other
    damage             The cost of ending gangs: number of gangs, leaf cells, age of their work
    ending_gangs       Prefers victims that are ending already, since ending them costs nothing
    eviction_ranking   Bins ranked by the damage of clearing them, kept up to date
    evictions_within   An eviction ranking as far as its bins lie on allowed nodes
    gangs_by_size      Gangs ranked by the leaf cells that they hold
    greedy_search      Gives each member the bin with the least damage: a first set of victims
    minimum_runs       Whether a gang waits only until others have run for long enough
    preemption         Entry point: overtakes, downgrades or ends other gangs, in this order
    preemption_case    Where a gang may preempt, which gangs it may displace, and trial fits
    victim_candidates  Possible victims, and upper bounds on the room that ending them brings
    victims            Finds the set of victims with the least damage
"""
