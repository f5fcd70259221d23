"""The outlook: when a gang that is submitted now would start, as the leader computed it last.

The one idea: the webhook tells users at submission what only the leader knows, and waits for no
other process. The leader writes a small table for each combination of VC, leaf type, class and
size; every webhook replica reads it now and then. Without a leader it grows old and is not told.

outlook   the port: what the leader writes, and what webhooks read
postgres  the port in Postgres
"""
