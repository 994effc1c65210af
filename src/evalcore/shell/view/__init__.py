"""Recorded runs, and those that go on, looked at in a browser: the command view.

run_places  which files below a folder are runs, by content and without following links
run_list    what the list says of each
page_desk   pages made one after another, and the last ones kept
site        what is at which address
server      who may ask: this machine, by a token, and no other page
viewer      a folder served until Ctrl-C
"""
