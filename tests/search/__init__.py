"""Reading memory: search, recall, wake-up, families, tree, query preparation, and the plans behind them."""
