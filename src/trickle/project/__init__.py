"""Projects: a folder with ``trickle.yml``, SQL and Python files that say which stream tables there shall be."""
