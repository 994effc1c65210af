"""What is asked of a model, what it replies, and what that takes.

agenda   each distinct question once, and which reply each task takes
replies  one reply to each question; those that are at hand together in a group
usage    requests, tokens, seconds and cost of a run
budget   how much of these a run may take
"""
