"""The only place that reads, asks, waits or writes.

cli/        one file a command: parse, call, print
config/     run configs and flags to a plan
starter/    a file of questions to a task and a config
tasks/      task files to task configs, trees and trusted code
files/      paths, and addresses of files in stores
data/       data files to documents
prompts/    documents to requests
models/     requests to replies
answerlog/  answers on the disk before they count
run/        run: prepare, ask, score, close, write
engines/    who does the work: this process, several, a cluster
logs/       recorded answers of every format
score/      score: recorded answers by old or new rules
compare/    compare, check and power: recorded runs side by side
explain/    explain and diff: documents and verdicts of recorded runs
report/     recorded runs gathered for a page
view/       folders of runs served to a browser of this machine
output/     files, and what each command prints
safety/     text, names, JSON and files that are safe to show and to write
"""
