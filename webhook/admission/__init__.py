"""Admission: decides the class of a gang by rules and quotas, and charges it. Once per gang.

    ledger available     admitter: apply rules, charge within quotas, follow earlier members, grow
    ledger unavailable   memory_decider: the same by last known usage; charged later

Modules here know gangs and charges, but no AdmissionReview and no JSON. Imported by
`webhook.reviews`, `webhook.records`, `webhook.responses` and `webhook.wiring`.

    admitter        decides the class of a gang and charges its quotas in the ledger
    memory_decider  the same by what is in memory: previews, and while the ledger is unavailable
    charge_request  what one pod asks for on behalf of its gang, and the charge that covers it
    gang_decision   the decision: applies the rules, or takes over that of an earlier member
    grower          grows the charge of a gang for a member that asks for more
    growth          whether rules and quotas let a gang grow
    usage_limits    limits that go with a charge, by the range in which the rules decide the same
    recent_gangs    gangs that were decided lately, for members that come later
    wording         the sentences about a decision: warnings, and the reason in the log
"""
