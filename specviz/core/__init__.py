"""What every part may use: settings, errors, text, trees, paths. Loads no torch.

Import levels; a module imports only from its right (a test enforces it):

    draft_spec > spelling > settings, trees > errors, paths, text
"""
