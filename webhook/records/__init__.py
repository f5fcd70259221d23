"""Records of decisions: a row of the decision log, a metric, and Events on the pod.

Nothing here changes a decision or waits for I/O: the log and Events are written in the background.
Imported by `webhook.reviews`, `webhook.guard` and `webhook.wiring`; `replay` by `cli`.

    decision_recorder  records each decision: metric, notice for an Event, log row for a replay
    refusal_log        records every refusal that no decision has recorded
    limit_changes      records changes of limits by a billing system
    pending_events     keeps the text of an Event until its pod has a name, then writes it
    replay             decides logged rows again, and compares
"""
