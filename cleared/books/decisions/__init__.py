"""What people decide of the books: entries by hand, receipts, accounts, reconciling, closing and reopening."""
