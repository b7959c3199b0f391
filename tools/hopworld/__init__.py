"""HopWorld: a seeded generator of a fictional world and of multi-hop questions about it."""
