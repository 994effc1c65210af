"""A whole run: ``run`` asks a model, scores its answers, closes the numbers and writes them.

run         run(): the steps below in order
collector   the garbage collector, left out where many records are made
by_task     what a plan says of tasks, groups and globs, task by task
prepare     a plan's tasks: names to trees, trusted code, documents, requests
failures    tasks that cannot be built
folder      the run folder, who may use it, and the answer log
questions/  what is asked, the replies, and what they take: usage and budget
answer_spool  the log of a run in a store, kept here while it grows
ask         each distinct question once, none that the log knows, every reply durable before it counts
live/       what is known while the model is asked
task_unit   a task scored here or by the workers of an engine, which read recorded answers
close       scores to numbers, for runs and for recorded answers
write       samples, results and run.json, for runs and for recorded answers
run_result  RunResult: what run and score return
"""
