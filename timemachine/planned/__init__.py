"""Placing in a play: the product's planner and engine, with a twin of the shell around them.

cells          The engine as the planner uses it; members that have places run at once
current_order  Keeps the ranks of waiting gangs current
gangs          Arrivals that were admitted, and their members
nodes          Nodes that lack nothing beside leaf cells
planned_gangs  The gangs that wait for cells or run
ports          What a play needs of whatever places gangs
possibility    Whether a gang could ever start
run_times      Run times as the product predicts them, from the runs of the play
"""
