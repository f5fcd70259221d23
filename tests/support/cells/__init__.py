"""Clusters, gangs and engines for tests of `extender.cells`.

builders          `a_cluster`, `a_gang`, `a_node_cell`, `an_engine`: the vocabulary
engine_calls      calls of an engine that tests repeat
engine_world      `EngineWorld`: an engine to ask, place, bind and end, checked after each step
engine_history    a random history of an engine, compared with brute force
following         `Following`: a random history of nodes that come, go and move under gangs
random_clusters   small random clusters whose promises can be kept
brute_force       what trying everything gives
comparison        an engine's decision compared with brute force
snapshot          everything that an engine shows, to be compared
player            plays HiveD's scenarios on an engine
scenario_steps    what a step of a scenario does, and what a check demands
refused_requests  at least one request for every reason to refuse
queue_sentences   the sentences about gangs that the planner holds
"""
