"""The page: Gradio lives here and in app.py, nowhere else.

Import levels; a module imports only from its right (a test enforces it):

    app > pages > gallery_events, run_events > form_events > controls, measure > api, lane_controls, link, session,
    zero_gpu > device_line, form_check, offer, policy_control, running, setting_controls > device_queue,
    figures_panel, form, labels, model_store, page_theme, race_view, text_line, theme_watch, worker
"""
