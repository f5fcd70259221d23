"""`cellgate what-if`: the same arrivals played twice, as it was and with other rules or hardware.

The commands read flags and print; `timemachine` plays. Nothing here changes a cluster, a log or a
policy. Results go to standard output, progress to standard error.

command       the command
request       what its flags ask for
sources/      the arrivals: the decision log, a CSV trace, a generated workload
sides         the worlds of both sides
players       plays worlds, each in a process of its own
capacity      the capacity question
report        the answer as text
as_json       the answer as JSON
html/         the answers as one HTML file with pictures
output_files  whether a file can be written, before long work
words         numbers in words
"""
