"""What admins write and what it means. Pure.

The core's contract, shared with `extender.cells` and `extender.queue`:

1. No IO, no clock, no randomness, no logging, no `await`. Time comes in as `now`; explanation goes
   out in the decision.
2. Same inputs, same decision: no `set` is iterated, ties are broken explicitly.
3. An exception means that nothing changed.
4. Kubernetes objects never enter: `kube.read.pods` turns them into the types of
   `policy.submission`.

    classes     Priority classes, ranked: which is higher, which are high, and what each means …
    errors      Errors, classified by who must act.
    placement   Where a pod is, or is to be: the type that engine, annotations and log share.
    policy      A policy: what all documents together mean.
    shaping     Shapes: what pods of a VC, a group or a purpose get beside their class.
    store       The policy in force: all documents together, or the last ones that were good.
    submission  What somebody asks for, in our own words: the types that rules, quotas and cells …
    topology    The cluster as cells: what exists, and who was promised what. Immutable.
    wording     How we put things: small helpers for texts that people read, the same everywhere.
    cluster/    The Cluster document: which cells exist, and which of them were promised to …
    documents/  The documents that admins write: models, parsing, validation, problems with …
    identity/   Users, groups, access to VCs, and who may change which document.
    quotas/     Quotas and limits of groups and users.
    rules/      Priority rules: which class a gang may run at.
"""
