"""Facts that everyone shares: definitions, records, reasons, reports, names."""
