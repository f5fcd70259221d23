"""What a changed policy would have decided over the last day, for dry runs of documents.

The one idea: a replica keeps the last day's admissions in memory, compact, so that a dry run is
answered at once. What takes longer goes on in a thread, and a repeated dry run has the answer.
Imported by `webhook.reviews` and `webhook.wiring`.

    policy_effects     the warnings about a changed policy
    recent_admissions  the admissions of the last day, read from the log in the background
"""
