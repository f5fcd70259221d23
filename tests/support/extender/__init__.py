"""The extender's parts without a network.

shell        `Shell`: cluster, pods, outcomes and Events wired as in the service
gang_pods    pods of gangs that use whole nodes of it
planning     `Planning`: a planner over it, and the pods that it lets go
waiting      the view of waiting gangs over it
run_world    replicas that follow a gang and record its runs
books        `Books`: a ledger that follows its pods
mixed_load   `MixedLoad`: a cluster under mixed load, whose log is replayed
leading      a replica that always leads
simulating   `SimulatedWorld`: a webhook, a planner and a simulator over one ledger
window_world  `WindowWorld`: a gang on a node that will be in maintenance
logged_load  a log of a mixed load, and rows of the webhook beside it
renamed_log  a log under other names, and masked files of it
recorded_day  `RecordedDay`: what both services record of a few gangs
group_sizes  PodGroups that all need the same number of members
"""
