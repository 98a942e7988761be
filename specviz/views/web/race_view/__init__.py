"""The race view: a Gradio component, its wire format, and the JavaScript that draws it."""
