"""The only place that reads, asks, waits or writes; core knows nothing of it."""
