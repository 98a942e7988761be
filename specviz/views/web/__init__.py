"""The page: Gradio lives here and in app.py, nowhere else."""
