"""Random queries over random tables under random changes and limits, compared with plain Spark after each round.

``make fuzz MINUTES=10 SEED=7`` runs it; ``make fuzz SEED=7 CASE=12`` runs one case of it again.
"""
