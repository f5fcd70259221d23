"""What admins write and what it means: the decisions about priority, quotas and access. Pure.

The one idea: documents become immutable tables, and a decision is a function of tables, submission
and usage alone. `parser` turns the YAML of ConfigMaps into the typed documents of `documents` and
`cluster`; the other folders hold what they mean; `store` keeps the policy in force.

The contract of the core, shared with `extender.cells` and `extender.queue`:

1. No IO, no clock, no randomness, no logging, no `await`. Time comes in as `now`; explanation goes
   out in the decision.
2. Same inputs, same decision: no `set` is iterated, ties are broken explicitly.
3. An exception means that nothing changed.
4. Kubernetes objects never enter: `kube.read.pods` turns them into the types of
   `policy.submission`.

The lowest layer: every package may import it, and it imports none of ours.

    capacity        How large a gang can be at most, in the cluster and in each VC.
    classes         Priority classes, ranked: which is higher, and which are high.
    errors          All errors that Cellgate raises, and how each is handled.
    feasibility     What can never start: larger than its VC, quota or any node.
    parser          Reads a document: `parse_document`. The registry of kinds, `MODELS`.
    placement       `Placement`: the node and leaf cells of a pod.
    pod_life        When a pod was created, bound, started and ended, and how.
    pod_resources   What a pod needs of its node beside leaf cells.
    policy          `Policy`: what all documents together mean.
    quarantine      Which nodes to quarantine, because members of several workloads fail there.
    reference       Writes docs/policy-reference.md from the models.
    shaping         Shapes: node selectors, requests, mounts and run time that pods get.
    store           The policy in force: the last good documents without contradictions.
    submission      What a submitter asks for: the types that rules, quotas and cells share.
    topology        The cluster as cells, and which of them each VC was promised.
    wording         Helpers for texts that people read: quoting, cutting, paths, plurals, times.
    admission/      What rules and quotas decide about one gang, by given usage.
    cluster/        The Cluster document: which cells exist, and what each VC was promised.
    documents/      All other documents: YAML, models, and problems with their paths.
    identity/       Groups of users, access to VCs, and which users may change which document.
    past/           What a policy would have decided about the submissions of a past day.
    queues/         Queues: the order of waiting gangs, in seconds of waiting.
    quotas/         Quotas: limits of groups and users, and what happens over them.
    rules/          Priority rules: in which class a gang may run.
"""
