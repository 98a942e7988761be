"""What the app offers: models and hardware from spaces.yaml, presets, recorded runs, and the Space's own settings.

Import levels; a module imports only from its right (a test enforces it):

    front_matter, limits, model_loader > catalog, gallery, presets > yaml_records
"""
