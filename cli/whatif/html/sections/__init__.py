"""The parts of the report on a comparison.

summary  what the comparison says, in sentences and main figures
waits    waits by VC, group, class and size: a picture in each row of a table
use      use of the cluster over time, in all and by VC
impact   which VCs and groups gain and lose how much waiting
gangs    which gangs gain and lose, and what else happened to gangs
cluster  utilisation, fragmentation, starvation, and VCs that are worse off than alone
rows     the rows of both sides beside each other; the largest, and all others as one
pairs    a figure before and after, in one cell
"""
