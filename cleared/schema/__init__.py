"""Values that every layer shares: money, dates, names, the shape of a bank's row."""
