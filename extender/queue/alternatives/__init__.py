"""Alternatives: gangs that may run in several forms; the first form that fits is used. Pure.

The one idea: a gang that waits has the form that its pods ask for. When it is planned, it takes one
form after the other, and it keeps the form in which it gets places. What follows, such as its pool,
its lines or the reservations of others, goes by the form that it has. Imports: `policy`,
`extender.cells`, and of `extender.queue` what plans one gang.

forms  Which form of a gang is used, and decisions about gangs with alternatives
"""
