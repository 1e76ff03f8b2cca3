select frame from frames where frame = any ($1)
