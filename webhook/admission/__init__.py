"""Admission: decides the class of a gang by rules and quotas, and charges it. Once per gang.

    ledger available     admitter: apply rules, charge within quotas, follow earlier members, grow
    ledger unavailable   memory_decider: the same by last known usage; charged later

The decision itself is in `policy.admission`; here it is put into effect. Modules here know gangs
and charges, but no AdmissionReview and no JSON. Imported by `webhook.reviews`, `webhook.records`,
`webhook.responses` and `webhook.wiring`.

    admitter        decides the class of a gang and charges its quotas in the ledger
    memory_decider  the same by what is in memory: previews, and while the ledger is unavailable
    grower          grows the charge of a gang for a member that asks for more
    start_outlook   when a gang that is submitted now is expected to start
    recent_gangs    gangs that were decided lately, for members that come later
"""
