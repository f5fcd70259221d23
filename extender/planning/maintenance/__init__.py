"""Maintenance windows and Kubernetes: which nodes belong to them, and which gangs they concern.

Which gangs may start before and in a window is decided in `extender.queue.reserve.calendar`.

concerned_gangs  The gangs that run on nodes of a window, and when they are expected to end.
window_nodes     The nodes that have the labels of a window.
window_notices   Tells owners beforehand that their gangs run on nodes that will be in maintenance.
"""
