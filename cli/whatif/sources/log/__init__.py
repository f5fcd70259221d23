"""Arrivals from the decision log: of a database with its history of runs, or of an exported file.

The one idea: a *submission* is what the webhook decided about, a *run* is what became of it. Both
are joined by the name of the gang and by time. A submission without a run was refused, or never
started; a run without a submission began before the stretch.

arrivals     submissions and runs, joined
file_runs    the runs of a file, from the extender's rows about pods
joined       which submission each run belongs to
observed     nodes, and the documents in force, from the extender's and the webhook's rows
run_times    run times of gangs that never ran or have not ended, predicted
runs         a run, from the history or from rows
source       reads the database or the file
submissions  a submission, from the webhook's row
"""
