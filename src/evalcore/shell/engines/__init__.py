"""Who does the work: a map over units, here, in processes or on a cluster; what comes back merges in order.

interface      what an engine is, and the one that works here
worker         what a worker process does
unit_queue     units that are taken one by one, here as well, and their results in order
processes      worker processes on this machine
deadline       the guard of scoring: what takes too long is stopped
cluster        Ray: a cluster that is joined or started
cluster_tasks  what a cluster is asked to do, and what its workers do
cluster_tree   units spread over a cluster, results merged there
broker         the process that speaks with a cluster while units are done here
engines        ENGINES, and which one fits a size
"""
