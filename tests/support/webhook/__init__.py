"""The webhook without HTTP, over a ledger in memory.

admission_world  `AdmissionWorld`: one ledger, and replicas that charge it
review_requests  `a_review`: what the API server asks
reviews          `Webhook`: its reviews, with policy documents
conditions       the match conditions of our manifests, evaluated
"""
