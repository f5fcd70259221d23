"""Parts of the Queues document: entries of its lists, and checks that concern several fields.

queue_checks    Levels of the Queues document, and the bound of waiting.
window_entries  The gangs that it names, advance reservations and maintenance windows.
"""
