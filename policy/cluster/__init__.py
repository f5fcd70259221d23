"""The Cluster document: which cells exist, and what each VC was promised.

The one idea: the document has two forms and one result. HiveD's YAML (`hived*`) lists every cell
and is read unchanged. The derived form (`derived*`) names node labels, and the cells are built from
the nodes that are alive. Both end as a `policy.topology.Topology` for which `safety` has proven
that all promises can be kept at once.

May be imported by `policy` and by every package above it.

    derived           The derived form of the document.
    derived_cells     Builds chains of cells from the labels of live nodes.
    derived_promises  Promises compared with live nodes: kept as far as they fit.
    document          What both forms share, and what is built from them.
    domains           Domains, and promises that could mean several of them.
    fair_cut          Which promises are kept where a chain has too few cells for all.
    fields            Values of HiveD's YAML, as HiveD reads them.
    hived             HiveD's form of the document.
    hived_cells       HiveD's physical cells: inferred children and addresses.
    hived_keys        Keys of HiveD's YAML that are mistakes, or that have no effect here.
    hived_types       HiveD's cell types: the levels of each chain.
    hived_vcs         HiveD's virtual clusters: the cells that each was promised.
    node_tree         Nodes as a tree of places, with the cells built from them.
    promises          Promises that do not fit, in words.
    seen_nodes        Cells of the nodes seen lately, to judge changes and workloads by.
    safety            The proof that every VC can get all that it was promised at the same time.
"""
