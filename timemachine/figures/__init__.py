"""Figures of a play over time.

head_waits  Starvation: how long one gang is the first of its pool
steps       A number that is constant between changes
use_series  How the cluster is used, and what is left in fragments
"""
