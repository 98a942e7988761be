"""The race view: a Gradio component, its wire format, and the JavaScript that draws it.

Import levels; a module imports only from its right (a test enforces it):

    component > race_stream > bundle, record_types, wire
"""
