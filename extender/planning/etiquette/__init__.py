"""Etiquette of preemption, as the leader keeps it: `extender.queue.etiquette` decides.

run_protection  Tells the engine which gangs have not run for long enough, and wakes the loop
"""
