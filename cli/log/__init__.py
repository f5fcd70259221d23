"""`cellgate log` and `cellgate replay`: the decision log as a file, and its decisions repeated.

The commands read options and print; `state.log.archive` writes and reads files,
`extender.cluster.replay` and `webhook.records.replay` decide. Results go to standard output,
progress to standard error.

transfer    `cellgate log export` and `cellgate log import`
replay      `cellgate replay`
sources     the rows that a replay reads: of a database, or of a file
report      the result of a replay, as text and as JSON
admissions  the part of it about admission decisions
wanted      which part of the log the flags ask for
progress    how far long work is
texts       words for numbers and moments
mask        pseudonyms instead of names in a file
"""
