"""The `cellgate` command: reads flags and environment, puts the services together, says what
happens. Nothing here decides anything about pods.
"""
