"""evalcore inside other programs: small adapters on the public API, each of which imports its host only when used."""
