"""Reports: one value each, made from the index of the books, and its renderings (table, CSV, JSON, HTML, xlsx)."""
