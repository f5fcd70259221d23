"""Quotas: how much groups and their users may hold, and what happens over a limit.

The one idea: a quota is a list of limits for one charge. `quota_table` says which limits apply to a
gang, the ledger in `state` compares them with what is held, and `admission` applies the group's
choice (`over`) to a gang that exceeds one. How quotas are written is in
`policy.documents.quotas_document`.

May be imported by `policy` and by every package above it.

    admission    `AdmissionDecision`: what rules and quotas decide together, in words.
    billing      Limits that a billing system sets within bounds.
    charge       A charge, the limits that apply to it, and those that it would exceed.
    held_usage   What users and groups hold when the past is played again, in memory.
    limits       A limit, what it measures, and by how much it is exceeded.
    overflow     Gangs beyond the quotas of their group, and which of them may be raised next.
    quota_table  Which group pays for a gang, and which limits then apply.
    usage        What a scope holds, and how much of that is within quota.
"""
