"""What rules and quotas decide about one gang, by the usage that is given. Pure.

The one idea: the webhook, which then charges the gang, and `/v1/simulate`, which has no effect,
make the same decision with the same functions. They read usage and documents each for itself.

Imported by `kube.admission`, `webhook` and `extender`.

    basis           what a decision depended on beside what was asked for
    charge_request  what one pod asks for on behalf of its gang, the charge for it, and its limits
    gang_decision   the decision: applies the rules, or takes over that of an earlier member; words
    group_class     the class of a PodGroup whose pods are not known yet
    growth          whether rules and quotas let a gang grow
    logged          a decision and all it depended on, as a row of the log; the decision made again
    logged_request  what a pod asks for, as a row of the log has it
    preview         the decision without any effect, by usage that was read
"""
