"""The planner's loop: it feeds `queue` with pods and nodes, and executes what `queue` asks for.

Here are the loop, the pods that may not be planned yet, the quota queue and the writes to
Kubernetes. Which gang is next and where it goes is decided in `queue` and `cells`, which are pure.
Imported by the wiring and by `verbs`, which answer planned pods from their lease.

action_executor  Executes what the planner asks for: pods are released, nominated and ended.
class_raiser     Gangs that quotas lowered; they are raised when the quotas have room.
cluster_cells    The engine as the planner uses it.
held_calls       Bind calls of kube-scheduler that are held, and pods that are being bound.
held_pods        Pods that are not planned yet: they wait for quota, a PodGroup, a class, a gate.
pending_writes   Pods that are being written to at this moment.
pod_ranks        The rank of a gang that waits for quota, from its pods.
maintenance      Maintenance windows: their nodes, and the gangs that they concern.
planning_loop    The loop: pods and nodes go in, patches and deletions come out.
promise_keeper   Reservations: owners are told, and the promise ledger is kept.
promise_rows     Reservations as documents of the promise ledger.
queue_order      Keeps the order of waiting gangs current: the document, recent use, VCs.
queued_pods      Pods as the planner sees them.
silent_schedulers  Schedulers that pods name and that ask nothing.
quota_queue      Gangs that wait for quota; they are planned once they are charged.
raise_rules      Whether the policy allows a raise, within which limits, and its sentences.
run_protection   Which running gangs are protected by the minimum run; the engine is told.
user_requests    What users do to their own gangs while these wait.
"""
