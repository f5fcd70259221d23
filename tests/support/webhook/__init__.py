"""The webhook without HTTP, over a ledger in memory.

admission_world  `AdmissionWorld`: one ledger, and replicas that charge it
reviews          `Webhook`: its reviews with policy documents; `a_review`
conditions       the match conditions of our manifests, evaluated
"""
