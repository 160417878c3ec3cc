"""Cards: decisions asked of a human, as values, and the append-only files under ``queue/`` that hold them."""
