"""What people and programs may look at, and who may look.

access        Who may call an extender that serves TLS: one check before every answer.
census        Counts of leaf cells and cells, for metrics and inspection.
explainer     Why a pod is where it is, and what would become of one that does not exist yet.
hived_routes  `/v1/inspect/…`: HiveD's inspection API over HTTP, with HiveD's errors.
hived_views   HiveD's inspection API: the same paths, shapes and words.
json_views    Our own shapes of gangs, VCs, cells and decisions, for people and programs.
openapi       The OpenAPI document of the extender: every path, what it takes, and what it …
routes        `/v1/…`: what people ask about nodes, gangs, VCs, cells and decisions.
snapshots     Views of the cluster that all inspection requests share.
tokens        Who a Kubernetes token is and what they may read of us, remembered for some …
"""
