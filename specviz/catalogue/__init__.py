"""What the app offers: models and hardware from spaces.yaml, presets, recorded runs, and the Space's own settings."""
