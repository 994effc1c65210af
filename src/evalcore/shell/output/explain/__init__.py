"""Documents and changed verdicts printed, in ``blocks``.

``document_page``, ``score_page`` and ``document_data`` are of one document, ``diff_page`` and ``diff_data`` of two
scorings, ``renderers`` the tables of forms.
"""
