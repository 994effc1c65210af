"""Recorded answers of any harness: documents, golds, requests and replies, one document at a time."""
