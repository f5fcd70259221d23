"""The queue as callers see it: `/v1/queue`, and the place of a gang in other answers.

calendar_routes  `/v1/calendar`
queue_routes  `/v1/queue`
queue_view    the place of a gang as JSON: its rank, what that adds up from, the gang ahead
reservation_view  the reservation of a gang as JSON: cells, promised start, slips
window_routes  `/v1/windows`: what can start now in each VC, and until when
variant_view  what would let a gang start earlier, as JSON
"""
