"""What users do to their own gangs while these wait: the planner follows what their pods state.

The webhook decides which users may do it, and writes that on the pods (`webhook.guard`).

kept_hold_writer  Writes on pods that they have the hold of an earlier pod.
kept_holds        Holds of admins outlast the pods that state them.
start_wishes      Wished starts: owners are told when one is not likely, or missed.
swapped_places    The place that a gang keeps after a swap, as an annotation.
user_holds        Gangs that users hold: the planner leaves them out until they are released.
user_swaps        Gangs that users swap: their places in the queue.
"""
