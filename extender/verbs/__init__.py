"""kube-scheduler's verbs: filter, prioritize, preempt, bind.

Each verb reads the wire, asks `cluster` for a decision and answers in the words of the protocol.
Pods that the planner places are answered from their lease. Nothing here keeps state of its own or
starts background work. Imported by the wiring and by `upkeep`, which finishes preemptions.

bind               Bind: one API call that puts a pod on its node, with its placement.
filter             Filter and prioritize: the node that was chosen for a pod, or why there is none.
pod_decider        Reads the pod that a verb is about, and decides about it.
preempt            Preempt: which victims kube-scheduler ends for a pod, and which Cellgate ends.
repeated_refusals  Refusals that hold until the cluster changes.
routes             The verbs over HTTP.
unmanaged_pods     Pods of our kube-scheduler that ask for no leaf cells.
wire               kube-scheduler's extender protocol: arguments and answers.
"""
