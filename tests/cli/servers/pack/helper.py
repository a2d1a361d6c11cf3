NAME = "packed"
