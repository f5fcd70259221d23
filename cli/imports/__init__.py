"""`cellgate import KIND FILE`: documents of another system, converted to Cellgate's.

The one idea: the converted document goes to standard output, and what could not be converted, or
has another meaning in Cellgate, goes to standard error as remarks. Nothing is stored.

May be imported by the other modules of `cli`.

    command      Chooses the conversion by KIND.
    kinds        What can be converted.
    hived        HiveD's configuration, also inside OpenPAI's, to a Cluster document.
    rule_tables  Reads rule tables: Markdown, CSV or SQL dumps.
    rules        A rule table to a Rules document.
"""
