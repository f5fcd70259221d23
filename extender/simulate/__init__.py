"""Simulation: what would happen to a pod that does not exist, without any effect (`/v1/simulate`).

The one idea: nothing is decided here. What the webhook decides is in `policy.admission` and
`kube.admission`, what the planner decides is in `queue` and `cells`; here they are asked about a
pod that was not created, with the documents, usage, nodes and pods of this moment.

Imported by `inspection` and by the wiring.

    simulator  asks both one after the other, and puts the answers together
    submitted  the pod as the API server would pass it to the webhook; PriorityClasses
    admission  what the webhook would decide: identity, rules, quotas, what can never start
    standing   what the submitter holds, and the charge of the pod's gang, from the ledger
    places     what the planner would decide about the pod's whole gang
    gang_variants  what would let a waiting gang start earlier
    start_windows  what can start now in each VC, and until when
    search_turns  turns for searches that callers ask for
    open_vcs   the VCs that are open to a user, and in which a gang keeps its class
"""
