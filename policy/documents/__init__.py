"""Policy documents: the YAML they are written in, and a strict model of each kind but `Cluster`.

The one idea: an admin sees every problem at once, each with its path, and no text raises anything
but `SpecError`. The policy reference is generated from the models. What a document means for
decisions is not here but in the folder of its subject: `rules`, `quotas`, `identity`.

May be imported by `policy.cluster`, by the modules of `policy`, and by every package above it.

    alternatives_list  The list of alternatives in the annotation of a gang.
    billing_document   The Billing document.
    classes_document   The Classes document.
    identity_document  The Identity document.
    model_errors       Errors of the models (pydantic), in our own words.
    models             What all models share: strictness, common checks, types of fields.
    mount_entries      Mounts in the Shaping document.
    names              What names and other short texts may look like.
    queue_parts        Entries of the Queues document, and checks of several fields.
    queues_document    The Queues document.
    quotas_document    The Quotas document.
    rule_checks        Rules that can never apply, and classes that do not exist.
    rules_document     The Rules document.
    shaping_document   The Shaping document.
    yaml_text          What plain values of a document mean: numbers, booleans, null.
    yaml_tree          The one reader of YAML, for texts that may be hostile.
"""
