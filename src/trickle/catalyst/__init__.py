"""The only code that talks to Catalyst: front end, lifting, lowering."""
