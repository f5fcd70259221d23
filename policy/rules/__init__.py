"""Priority rules: in which class a gang may run.

The one idea: rules are tried from top to bottom. One that names a class lowers the gang's class and
matching goes on with the new class; `retain` and `fail` stop. No rule raises a class. All of this
is in `rule_table`; the other modules are parts of a rule and the words for its result. How rules
are written is in `policy.documents.rules_document`.

May be imported by `policy` and by every package above it.

    comparison  Numbers of leaf cells compared with a limit: `"> 4"`.
    decision    `RuleDecision`: what the rules decided, and how people are told.
    expression  `when`: a CEL expression, compiled once and bounded in cost.
    matching    Which rules match names: found by the table, or as they were found before.
    never_matching  Rules that match no gang, whatever is asked for or held.
    recorded    Which rules match names, as it was found before.
    patterns    Regular expressions in linear time.
    rule_table  Applies the rules to a submission: where a class is lowered, and where rules stop.
"""
