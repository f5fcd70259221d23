"""The promise ledger: which start was promised to which gang, and what became of it.

The one idea: a promise is written down when it is made and whenever it changes, so that the next
leader keeps it and owners can see why it slipped. What a promise contains is the business of
`extender.queue.reserve`; here it is a document.

promises  the port: what the leader writes, and what it reads when it takes over
postgres  the port in Postgres
"""
