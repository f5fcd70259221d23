"""Documents that rows refer to, masked: their structure stays, so that they are read as before.

cluster     Cluster documents in both forms
policies    all documents of a policy, as admissions and the queue refer to them
queues      the Queues document
conditions  CEL conditions that only compare names by equality
"""
