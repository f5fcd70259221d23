"""Users, groups, access to VCs, and who may change which document.

identity   Identity: who is in which group, who may use which VC, and whose word about …
ownership  Who may change which policy document, beyond what Kubernetes' own rights allow.
"""
