"""Commands for what is there before a run.

init        a file of questions to a task and a config
tasks       task files
models      model backends
completion  what a shell completes
"""
