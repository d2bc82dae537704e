"""Units of measurement: their names, and a reader of products and powers of them."""
