"""Responses: how a decision becomes a JSON patch, warnings or a refusal. Pure.

Sentences about a decision are in `policy.admission.gang_decision`. Imported by `webhook.reviews`
and `webhook.guard`.

    pod_response  the response about a pod: class, annotations, gate, warnings, or a refusal
    patches       the JSON patches of single fields of a pod
    request_line  what a pod asked for, in one line on the pod, for the guard to compare
"""
