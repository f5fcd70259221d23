"""Order, reservation and backfill of waiting gangs. Pure, under the contract of `policy`.

attempts         What was asked of the world and is not seen done yet: one thing at a time …
contended_nodes  Nodes on which pods that have places there keep each other from being bound.
gang_planner     The planner: whole gangs placed ahead of kube-scheduler.
in_flight        The way from release to binding, which only so many pods go at once.
member_places    Places for the members of a gang that have none, one after the other.
model            What the planner is told, and what it wants done. Immutable.
order            In which order waiting gangs are looked at.
ports            What the planner needs of others, as narrow as it can be.
queued_gang      One gang as the planner sees it: the pods of it that exist, and what became …
reasons          Why a gang is not planned, or is ended, where only the planner knows.
refused_places   Places that cannot be used: kube-scheduler refuses the node, or the node is …
seen_gangs       The gangs whose pods are seen, and which of them changed since they were …
waiting_gangs    Gangs that wait to be planned, in order, and never asked twice in vain.
wanted_actions   What is to be done for a gang, by where its members have their places and …
"""
