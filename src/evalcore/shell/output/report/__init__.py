"""A report as a page for a browser.

page_chunk  data that is unpacked when a reader looks at it
bundle      the page's JavaScript modules as one script
page        the page, in one file or with its data beside it

Its modules, its worker and its style sheet are in ``assets``.
"""
