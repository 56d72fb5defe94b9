"""The command ``trickle``: thin verbs over the API, and over the logs alone where that is enough."""
