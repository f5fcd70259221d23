"""Where the arrivals of a what-if are from.

generated  a generated workload, the same for the same seed
log/       the decision log of a database, or an exported file
open       opens the source that the flags ask for
played     what a source gives: arrivals, and what they met
trace      a CSV file with the columns of the Philly trace
"""
