"""Moving in: books that other programs kept, as opening balances or with their whole history."""
