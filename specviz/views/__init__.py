"""What people see of a trace: figures, the terminal, the page.

Import levels; a module imports only from its right (a test enforces it):

    terminal, web > plots, report > lane_names
"""
