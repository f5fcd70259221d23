"""The webhook without HTTP, over a ledger in memory.

admission_world    `AdmissionWorld`: one ledger, and replicas that charge it
review_requests    `a_review`: what the API server asks
logged_admissions  `LoggedAdmissions`: a log of admission decisions of every kind
replayed           every decision that a test makes is made again from its row
reviews            `Webhook`: its reviews, with policy documents
conditions         the match conditions of our manifests, evaluated
"""
