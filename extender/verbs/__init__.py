"""kube-scheduler's verbs: filter, prioritize, preempt, bind.

bind               Bind: one API call that puts a pod on its node, with its placement.
filter             Filter and prioritize: the node that was chosen for a pod, or why there is none.
preempt            Preempt: whom kube-scheduler may end for a pod, and whom we end ourselves.
questions          What every verb begins with: which pod is meant, and what the engine says about it.
repeated_refusals  Refusals that hold until the cluster changes.
routes             kube-scheduler's verbs over HTTP.
wire               The words of kube-scheduler's extender protocol, and how ours become them and back.
"""
