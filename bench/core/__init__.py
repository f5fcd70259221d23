"""Benchmarks of the code that decides: no network, no database, one process.

Times are CPU times or the best of several rounds, so that other load on the machine matters little.

    engine    plan and apply gangs on clusters of growing size; building and recovery
    shadow    when a gang could start, if others end as expected
    windows   the largest shapes that can start now, and variants of waiting gangs
    blocking  the longest piece of changes that concern the whole cluster
    spread    racks that gangs span, compared with the optimum and with next-fit
    large_gangs    what a member of a gang of thousands costs
    room      planning with CPU and memory, compared with leaf cells alone
    nodes     nodes that join, leave and change while gangs run
    rules     a decision by the last rule of tables of growing length
    replay    a log decided again from an exported file
    volume    what the log grows by, for each gang that comes and goes
    pods      reading a pod from its JSON
    clusters  the clusters that `engine` and `spread` measure on
    busy_clusters  the clusters that `blocking` measures on
"""
