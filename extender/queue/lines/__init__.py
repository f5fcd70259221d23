"""Lines: waiting gangs that ask for the same, and which event may help which line. Pure.

`extender.queue.waiting_gangs` uses these parts. An order of gangs, or a decision about one, does
not belong here. Imports: `policy` and `extender.cells`.

gang_places  All waiting gangs in order, and in order within their pools
kinds        Lines that differ in sizes and run time only, and what did not fit of them
shapes       GangShape: what a gang asks for, without its name
sleepers     Which kinds of lines wait for which leaf cells
"""
