"""The engine's state: cells, VCs and gangs as they are now, and the operations that change them.

Nothing is decided here, and no other package than `extender.cells` imports it.

The one idea: every change goes through `AllocationTable`. It keeps the derived data (sums in the
tree, rankings, free lists, promise counters) in step, and it can undo what happened inside
`what_if()`. So `plan` tries real changes on the real state and takes them back, and no copy of the
cluster is ever made.

    allocation_table  The state of all cells, VCs and gangs; all changes go through it
    bad_nodes         Nodes with bad leaf cells, by chain
    cell_changes      Cells that join and leave while others are in use, and promises with them
    change_log        Cells and gangs that changed, for indexes that catch up when they are read
    foreign_use       Leaf cells that foreign pods use, by chain
    gang_slots        The slots of one gang, by member, node and standing
    placed_gangs      Gangs that hold or reserve leaf cells, their slots, and a slot's `Placement`
    ranking           Bins ranked by room: finds the best bin without visiting all
    registry          Gangs by VC and priority: finds possible victims without visiting all
    supply            Free lists of one chain (split and merge), and the proof of VC safety
    tree              Physical cells of one chain as a mutable tree
    undo              Changes that can be undone: the base of `AllocationTable`
    vcs               VCs: the preassigned cells each was promised, and where they are mapped
"""
