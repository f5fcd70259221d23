"""Nodes that were seen lately: the extender's leader notes them, the webhook compares with them.

The one idea: what is possible is judged by the nodes of the last days, not of this minute. A node
that fails does not make a promise or a workload impossible.

seen_nodes  the port: what the leader notes, and how the nodes are counted
node_facts  how large gangs can be, by the Cluster document and these nodes
postgres    the port in Postgres
"""
