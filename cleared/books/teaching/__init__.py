"""Teaching an agent a vendor: a row in the table of its script, which is checked and proposed."""
