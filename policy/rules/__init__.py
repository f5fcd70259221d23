"""Priority rules: which class a gang may run at.

comparison  Comparisons of a number of leaf cells with a limit, as rules write them: `"> …
decision    What the rules decided about one submission, and how it is told to people.
expression  `when` of a rule: a CEL expression over one submission, compiled once.
patterns    Regular expressions of rules: found anywhere unless anchored, in time linear in …
rules       Priority rules: at which class may this gang run?
"""
