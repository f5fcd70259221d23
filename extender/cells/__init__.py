"""The cell engine: it decides which leaf cells a gang gets. Pure: it imports `policy` and no IO.

The contract that callers rely on:

1. No IO, clock, randomness, logging or `await`. Time comes in as `now`; explanations go out in the
   decision.
2. Same inputs, same decision. Ties are broken by the order of the cells, never by a hash.
3. `plan` changes nothing that can be observed: whatever it tries, it undoes. Only `apply`, `expire`
   and the methods that report events (`observe_…`, `forget_…`, `recover…`, `…_topology`, `rerank`)
   change state.
4. An exception means that nothing changed. "No room" is not an exception but a `Wait` decision with
   a stable reason.
5. Kubernetes objects never enter. Callers translate them to the types of `model`.
6. One writer: the caller serialises calls. The engine has no locks.

After every step the invariants of `views.invariants` hold. The most important one is VC safety:
every VC can still get all cells that it was promised (`state.supply`). Only `extender.cluster`
calls the engine. Other packages of the extender use its types (`model`, `views`, the effects of
`observe.reconfiguration`, `new_nodes`, `freed_cells`) and its sentences (`answers`, `wording`,
`lasting_sentences`).

How to read it: `state` holds what is allocated, `fit` finds idle cells for a gang, `preempt` finds
victims where there are none, `decide` combines the two into a decision and applies it, `observe`
takes in what the cluster reports, and `views` shows and checks the state.

    answers          Decisions without a place, each with its reason: wait, reject, preempt
    budget           How much one decision may cost: all bounds of the search in one place
    end_sentences    Sentences about gangs that preempt, and about gangs that end for them
    components       The parts of the engine that share one state
    engine           The engine's public methods: plan, apply, observe, recover, views
    engine_views     The engine's methods that only look at its state
    freed_cells      Leaf cells that became free, and which gangs they may help
    lasting_sentences  Sentences about waiting gangs without numbers that change meanwhile
    model            What goes into the engine and what comes out: requests, decisions, views
    new_nodes        Waiting gangs for which an autoscaler is asked for nodes
    phrases          Parts of sentences: what members need, who owns cells, lists of names
    queue_sentences  Sentences about gangs that the planner holds or that are being bound
    rebuild          New cells and gangs on them, built beside those in use
    reason_kinds     What a gang waits for, by the code of its reason
    wording          Sentences for people, such as why a gang waits, made from reason codes
    decide/          From a request to a decision, and from a decision to a changed state
    fit/             Where a gang fits in cells that are idle now
    observe/         Events of the cluster: pods run or end, nodes join or leave, new topologies
    preempt/         Which gangs must end or be downgraded so that a guaranteed gang can start
    state/           Cells, VCs and gangs as they are now, and the operations that change them
    views/           The state as inspection shows it, and the invariants that it must satisfy
"""
