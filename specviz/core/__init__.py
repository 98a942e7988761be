"""What every part may use: settings, errors, text, trees, paths. Loads no torch."""
