"""Documents and changed verdicts, printed.

blocks         a page of headed blocks
score_page     a document's scores and its part in every number
document_page  a document for people
document_data  a document for programs
stage_page     where two backends part
diff_page      changed verdicts for people
diff_data      changed verdicts for programs
renderers      the tables of forms
"""
