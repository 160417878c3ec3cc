"""The books in the review of cards: how entries are shown, decided, taken back and explained. Begin with
``book_review``."""
