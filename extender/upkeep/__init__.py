"""Background work of the leader: recovery, and what keeps engine, ledger and pods in agreement.

Each module corrects what no request would correct: leases that are not used, gangs that were half
bound, events that were lost, charges whose pods never came. Requests of kube-scheduler are answered
in `verbs`, gated gangs are planned in `planning`. Imported by the wiring and the app only.

budget_sync         Gangs whose end breaks a PodDisruptionBudget are made known to the engine.
ca_publisher        The CA that users verify the extender with is published in a ConfigMap.
elastic             Suspended Jobs are resumed with the first number of members that fits.
half_bound_gangs    Gangs that were half bound at a change of leaders: completed, or ended.
late_leases         Cells of members that are created later are leased again at a change of leaders.
lease_expiry        Leases that are not used in time end.
ledger_sync         Charges are confirmed when pods appear, and released when they end.
node_quarantine     Nodes on which members of several workloads fail are left out for a while.
node_recorder       The nodes that the leader sees are noted, for the webhook.
provisioning        An autoscaler is asked for nodes for gangs that wait for them.
reclaimed_ages      Gangs whose pods were ended for others keep their age, also in the ledger.
reconciler          Differences between the engine and the pods: found, corrected, counted.
recovery            From nothing to the first answer, when a replica becomes the leader.
reranker            Gangs get the priorities that their classes have now.
unasked_preemption  Preemption for pods where kube-scheduler does not ask for it.
waiting_ages        What counts of a gang's time as waiting, and what it keeps.
waker               Refused pods that would fit now are shown to kube-scheduler again.
"""
