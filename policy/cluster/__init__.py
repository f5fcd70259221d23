"""The Cluster document: which cells exist, and which of them were promised to whom. Pure.

It has two forms. HiveD's YAML (`hived*.py`) lists every cell; it is read unchanged. The derived
form (`derived*.py`) names node labels, and the cells are built from the nodes that are alive. Both
end as a `policy.topology.Topology` of which `safety` has proven that all promises can be kept at
once.
"""
