"""What is known of a run while its model is asked.

interim_scores  numbers of the documents answered so far
progress_file   how far the run is, in its folder
"""
