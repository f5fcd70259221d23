"""Policy documents, and submissions that they decide about.

documents      documents of one kind as text and read; `a_submission`
cluster_texts  cluster documents as text, in both forms, and read
golden_tables  the two rule tables that we come from
rule_reading   rules decided in the plainest way, to compare with
past_days      days of the past, said in one line for each gang
"""
