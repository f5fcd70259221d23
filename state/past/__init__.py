"""The past as a policy is tried on it: admissions of the decision log, and charges of the ledger.

The one idea: what was asked for and how long it was held is all that rules and quotas need, so
both are read in the types of `policy.past`, without the rest of log and ledger.

past      the port: what the webhook reads
postgres  the port in Postgres
"""
