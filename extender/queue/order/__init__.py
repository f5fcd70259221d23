"""The order of waiting gangs by the Queues document: levels, ranks and what they add up from. Pure.

The one idea: a rank is a number of seconds. It is the moment at which a gang asked, minus worth ·
factor for each factor of its level, so that every place in the queue can be explained by adding.
What a worth is, and why every wait has a bound, is in `policy.queues`. Reading history and watching
documents do not belong here: `extender.planning` feeds the order. Imports: `policy` and
`extender.queue.forecast`.

explanation   Sentences about a rank, and about the gang ahead
facts         QueueFacts: what the order knows of a gang
fair_shares   Recent use of users and groups, and the factor that follows
gang_order    GangOrder: levels, factors and ranks of gangs
listing       All waiting gangs with their places in queue, level and pool
new_places    Where gangs that do not exist yet would be
rank_changes  RankChanges: which ranks have changed, beyond what time alone does
ranking       Ranking: the ranks of the planner's gangs, and when they change
standing      Standing: the rank of one gang, with its parts
swaps         Swaps: two gangs of one pool exchange their places
"""
