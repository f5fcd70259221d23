"""Responses: how a decision becomes a JSON patch, warnings or a refusal. Pure.

Sentences about a decision are in `policy.admission.gang_decision`. Imported by `webhook.reviews`
and `webhook.guard`.

    pod_response  the response about a pod: class, annotations, gate, warnings, or a refusal
"""
