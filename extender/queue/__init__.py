"""Waiting gangs: which gang is planned next, and which actions follow. Pure: no IO, no clock.

`GangPlanner` takes reports about pods and cells, and each `step` returns actions for the API server
and notices for owners. It decides the order and when to retry; where a gang fits is the engine's
decision, which it gets through `ports.Cells`. Calls to Kubernetes, time and metrics do not belong
here: `extender.planning` runs the planner and takes its actions. Imports: `policy` and
`extender.cells`.

alternatives     Gangs that may run in several forms
attempts         Actions in progress and their retries, one at a time for each pod
contended_nodes  Nodes on which nominated pods block each other
forecast         How long gangs are expected to run, and when gangs that wait start
gang_planner     GangPlanner: the state of every queued gang, and its steps
held_bindings    Bindings that are held until the whole gang can be bound
in_flight        Pods that are released and not bound yet, limited in number
lines            Waiting gangs that ask for the same, and which event may help them
member_places    Decisions about the members of a gang that have no place
model            Input and output of the planner: pods, actions, notices
notices          Changes of the reason why a gang waits
ports            The interfaces that the planner needs: cells, nodes, bind calls, run times
protection       How running gangs are protected from gangs that wait
queued_gang      One gang: its pods, refused nodes, victims
refused_places   Places that kube-scheduler refuses, or whose node is lost
reserve          Reservations: large gangs start, too, and small ones use the gaps before
room_search      Decisions that respect CPU, memory and the rest of the room on nodes
seen_gangs       All gangs by key and by pod, and which have changed
order            The order of gangs by the Queues document
variants         What would let a waiting gang start earlier, and what could start now
waiting_gangs    The queue of waiting gangs, in order of rank and in lines
wanted_actions   The actions that a gang needs
withdrawals      Places that are taken back from gangs
"""
