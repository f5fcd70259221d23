"""`cellgate what-if`: the same arrivals played twice, as it was and with other rules or hardware.

The commands read flags and print; `timemachine` plays. Nothing here changes a cluster, a log or a
policy. Results go to standard output, progress to standard error.

sources/  the arrivals: the decision log, a CSV trace, a generated workload
html/     the answers as one HTML file with pictures
"""
