"""The plan language: columns, expressions, nodes, and how to walk and show them."""
