"""Policy documents: from the YAML of a ConfigMap to a typed document, or to all its problems.

The one idea: an admin sees every problem at once, each with its path, and no text raises anything
but `SpecError`. A `…_document` module is the strict model of one kind, and the
policy reference is generated from it. What a document means for decisions is not here but in the
folder of its subject: `rules`, `quotas`, `identity`, `cluster`.

May be imported by `policy` and by every package above it.

    classes_document   The Classes document.
    contradictions     What documents say against each other.
    identity_document  The Identity document.
    model_errors       Errors of the models (pydantic), in our own words.
    models             What all models share: strictness, common checks, types of fields.
    names              What names and other short texts may look like.
    parser             Reads a document: `parse_document`. The registry of kinds, `MODELS`.
    partial_document   The readable part of a document that has problems.
    quotas_document    The Quotas document.
    reference          Writes docs/policy-reference.md from the models.
    rule_checks        Rules that can never apply, and classes that do not exist.
    rules_document     The Rules document.
    shaping_document   The Shaping document.
    yaml_text          What plain values of a document mean: numbers, booleans, null.
    yaml_tree          The one reader of YAML, for texts that may be hostile.
"""
