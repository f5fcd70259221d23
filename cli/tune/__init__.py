"""`cellgate tune`: searches for a better Queues document on recorded or generated arrivals.

The commands read flags, start processes, keep files and print; what is tried and what is better is
decided in `timemachine.tuning`. Nothing here changes a cluster, a log or a policy: the best
document is written to a file. Results go to standard output, progress to standard error.

budget    how long the search may go on, and how long it still takes
command   `cellgate tune`: from flags to the report
evaluate  one evaluation, in a process of its own
flags     its flags
kept      the file of finished evaluations, from which a search goes on
output    the document that was found, as a file
as_json   the result, as JSON for programs
report    the result, as text for people
html      the result, as one HTML file
frontier_picture  the training weeks in it: two objectives as axes, the frontier as a line
result    what a search found, and what it was asked
search    plays what the search asks for, until the finalists are judged
wanted    what the flags ask for
workers   processes that play evaluations
"""
