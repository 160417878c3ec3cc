"""Review: what people decide about cards, in one place that knows nothing of terminals or pages."""
