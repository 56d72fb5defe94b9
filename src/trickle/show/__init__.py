"""Draws handles, reports, explanations and lineage as HTML, for notebooks. Pure functions of the model; all text is escaped."""
