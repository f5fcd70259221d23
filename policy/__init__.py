"""What admins write and what it means. Pure.

The core's contract, shared with `extender.cells` and `extender.queue`:

1. No IO, no clock, no randomness, no logging, no `await`. Time comes in as `now`; explanation goes
   out in the decision.
2. Same inputs, same decision: no `set` is iterated, ties are broken explicitly.
3. An exception means that nothing changed.
4. Kubernetes objects never enter: `kube.read.pods` turns them into the types of
   `policy.submission`.
"""
