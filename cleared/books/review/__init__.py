"""What the books say in the review of cards: how they are shown, decided and taken back."""
