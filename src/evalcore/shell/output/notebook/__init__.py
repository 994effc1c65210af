"""What commands found, as notebooks show it.

pages         pages, grids and blocks as HTML
result_forms  which function writes which result
"""
