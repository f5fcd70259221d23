"""The history of runs: records what `extender.runs` finds, and shows what is recorded.

Every replica follows the pods; only the leader records. Records go through the decision log, which
keeps them while Postgres is unavailable. What a process had not recorded when it was killed is
found by the next leader: from pods that exist, and from runs in the history that have none.

Imported by `extender.wiring` and `extender.app`.

    seen_pods     a managed pod, translated for `extender.runs`
    run_facts     a run, translated for the history
    run_recorder  follows pods, records runs, and repeats what is not recorded
    lost_runs     ends runs and pods of the history that ended while no leader followed them
    run_metrics   counts of what is recorded
    cancels       which users cancelled runs that were deleted
    turns         few questions to the history at once
    queries       what parameters of requests mean
    prediction_routes  `/v1/predictions`
    run_routes    `/v1/runs` and `/v1/usage`
    run_views     their JSON and CSV
"""
