"""One file a tax year: which line of a form a key of ``tax_line`` means, and what share of it is deducted."""
