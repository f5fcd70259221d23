"""The API-server side: at which class a pod may run.

    wire.py         AdmissionReview: what is asked, how it is answered; routes.py: over HTTP
    pods.py         a new pod: identify, decide, charge, log, answer
    identify.py     who is behind a request; stamps.py: the submitter's stamp on templates
    admitting.py    one decision per gang, charged in one step; verdict.py: its words;
                    limits.py: limits in memory; asking.py: the ledger, within the budget
                    (budget.py) and in turns (turns.py)
    growing.py      members that ask for more than their gang has; growth.py: whether they may
    by_memory.py    decides while the ledger is away, with recent.py; breaker.py: whether it is
    answers.py      from a verdict to patch and warnings; mutate.py: the patches
    guarding.py     what was decided stays; told.py: until it can be told as an Event
    templates.py    objects with pod templates: stamp and preview
    podgroups.py    native gangs; podgroup_reviews.py: their class, when they are created
    policies.py     policy documents; policy_watcher.py: bad ones that got in anyway
    notes.py        log rows (records.py) and metrics
    cluster_view.py what is known of the cluster
    reviews.py      puts together what answers; app.py: runs it

What decides is in `policy`; here is what identifies, charges, answers and remembers.
"""
