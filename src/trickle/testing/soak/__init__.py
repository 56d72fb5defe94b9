"""Stream tables left running among writers, kills and redeploys, and what must hold all the while: ``make soak MINUTES=10``."""
