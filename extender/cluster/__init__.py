"""The engine with its inputs and its log. No module outside this folder touches the engine.

`Cluster` is the only writer: it takes in nodes, pods and cluster documents, asks the engine for
decisions and applies them, and writes every step to the decision log. `ClusterReader` is the part
of it that only reads. A replay feeds the logged rows to a second `Cluster`.

What must not live here: calls to Kubernetes or Postgres (rows go to `state.log`, which writes them
in the background), and rules about where a gang fits (`extender.cells`). All other packages of
`extender` may import it; it imports `extender.cells`, of `extender.queue` what ranks and reserves,
`kube.read` types, `state.log` and `policy`.

cluster            Cluster: all changes of the engine's state, and their rows in the log
journal            The journal that writes to the decision log, and the one that drops everything
members            Members that have places, by UID and by gang
order_replay       The ranks of waiting gangs decided again
order_rows         Ranks, and what they depend on, as JSON and back
queue_log          QueueLog: writes ranks, reservations and lifted gates to the log
reader             ClusterReader: questions that change nothing and are not logged
replay             The decisions of an epoch repeated from the log
reservation_replay  Reservations decided again, by the same search
reservation_rows   Reservations, and what they depend on, as JSON and back
shape              ShapedCluster: nodes, documents and priorities; large changes in steps
rows               Requests, places, nodes and decisions as JSON, and back
topology_source    The document and the nodes from which cells are built
"""
