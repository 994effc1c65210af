"""Run configs and flags to a frozen plan.

keys          every key of a run config, each also a flag
yaml_file     YAML as data, with the line of every value
values        values as a command line writes them
locations     where relative paths are looked up, and where a key is written
plan_secrets  what a run sends that is secret
prices        what tokens cost
config_file  a run config as a file has it
plan          config and flags, decoded and checked
"""
