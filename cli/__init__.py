"""The `cellgate` command: reads flags and environment, puts the services together, says what
happens. Nothing here decides anything about pods.

    banner        What `cellgate run` tells the person who started it.
    certs         `cellgate certs`: make certificates, and say how they get into a cluster.
    check         `cellgate check FILE…`: validate policies offline, exactly as the webhook would.
    commands      All commands of the command line, with their flags.
    entry         Where the process begins. It loads the rest itself, so that Ctrl-C is quiet …
    import_rules  `cellgate import rules FILE`: a rule table from elsewhere into a Rules document.
    main          `cellgate COMMAND`: from arguments to an exit code.
    migrate       `cellgate migrate`: bring the schema of a database up to date.
    options       Flags, each with an environment variable `CELLGATE_<FLAG>` as its second home.
    policy_files  Policy documents in files: bare, or in manifests of ConfigMaps, several in one …
    rule_tables   Rule tables from elsewhere, read as rows: a Markdown table, CSV, or an SQL dump.
    run           `cellgate run`: everything on one machine, with a simulated cluster unless one …
    serve         `cellgate extender` and `cellgate webhook`: one production service each.
    simulate      The simulated cluster of `cellgate run`: set up with the manifests that a real …
"""
