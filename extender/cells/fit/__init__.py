"""Where a gang fits in cells that are idle now, without ending or moving any other gang.

`decide` and `preempt` use this package. It may read the state and try mappings inside `what_if()`,
but it never leaves a change behind, and it knows nothing about victims.

The one idea: placing a gang is bin packing. A *bin* is the cell in which a member must lie whole: a
node, or a preassigned cell below node level. Quick rules come first (lowest common ancestor, then
best fit), because rankings answer them without visiting the cluster; an exhaustive search with a
budget follows where the quick rules find nothing.

    bin_choice         Chooses bins for the members of a gang, close to each other
    cell_mapping       Chooses the physical cell to which an unused preassigned cell is mapped
    chain_choice       Chooses the chain for a gang, or divides a gang between several chains
    demand             What is to be placed: members, the VC, the allowed nodes; and chosen bins
    exhaustive_search  Tries all mappings and packings within a budget
    gang_fit           Entry point: finds seats for all members of a gang in one chain
    guaranteed_fit     Fits a guaranteed gang into mapped and unused preassigned cells of its VC
    leaf_choice        Chooses the leaves inside a bin
    packing            Packs members into bins one after the other
"""
