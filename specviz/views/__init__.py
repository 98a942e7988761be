"""What people see of a trace: figures, the terminal, the page."""
