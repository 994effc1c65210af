"""Who does the work: a map over units, here, in processes or on a cluster; what comes back merges in order.

interface   what an engine is, and the one that works here
processes   worker processes on this machine
worker      what such a process does
deadline    the guard of scoring: what takes too long is stopped
cluster     Ray: a cluster that is joined or started
engines     ENGINES, and which one fits a size
"""
