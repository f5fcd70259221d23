"""The planner of `extender.queue` with a small cluster around it.

orders         Facts and documents for tests of the order.
planner_history  `PlannerHistory`: random histories of a small cluster
planner_world  `PlannerWorld`: pods, a watch that is late, a kube-scheduler, a clock
room_world     `RoomWorld`: the same, with zones and CPU on nodes
engine_cells   an engine as the planner uses it
given_queue    a queue as forecasts see it, with the gangs that a test gives
unlimited_nodes  nodes that lack nothing beside leaf cells
driver         a planner's world, driven a step at a time
adversary      arrivals that try to keep one gang waiting
trying         variants and windows of a `TimedWorld`
timed_world    `TimedWorld`: gangs start at once and end on time, by a clock that a test advances
logged_history  `LoggedHistory`: documents, nodes and the leader change, all is logged
logged_world   `LoggedWorld`: a planner that leads, with its log
large_gang     a large gang that waits for the nodes of a VC, which small gangs use
"""
