"""Admission in a play: rules and quotas decide by what the gangs of the play hold.

admissions   What the webhook would decide about an arrival
quota_queue  Gangs that wait for quota
raises       Gangs that quotas lowered get their class when there is room
"""
