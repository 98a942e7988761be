"""The page's theme: warm paper and one blue by day, deep slate and one sky blue by night; system fonts only."""

from __future__ import annotations

import gradio as gr

from specviz.core.paths import ASSETS

STYLESHEET = ASSETS / "page.css"

_SANS = ("system-ui", "DejaVu Sans", "Segoe UI", "sans-serif")
_MONO = ("ui-monospace", "DejaVu Sans Mono", "Menlo", "Consolas", "monospace")

_PALETTE = {
    # variable: (light, dark)
    "body_background_fill": ("#fbfaf6", "#14171c"),
    "body_text_color": ("#1b1f24", "#e9ebee"),
    "body_text_color_subdued": ("#5d656e", "#a2a9b3"),
    "background_fill_primary": ("#ffffff", "#1b1e25"),
    "background_fill_secondary": ("#f4f2ec", "#23272f"),
    "block_background_fill": ("transparent", "transparent"),
    "block_border_color": ("#e2e0da", "#323741"),
    "block_label_background_fill": ("transparent", "transparent"),
    "block_label_text_color": ("#5d656e", "#a2a9b3"),
    "block_title_text_color": ("#5d656e", "#a2a9b3"),
    "border_color_primary": ("#e2e0da", "#323741"),
    "border_color_accent": ("#1f5fbf", "#56b4e9"),
    "color_accent_soft": ("#d6eaf8", "#10324a"),
    "input_background_fill": ("#ffffff", "#1b1e25"),
    "input_background_fill_focus": ("#ffffff", "#1b1e25"),
    "input_border_color": ("#d8d5cd", "#3a404b"),
    "input_border_color_focus": ("#1f5fbf", "#56b4e9"),
    "input_placeholder_color": ("#6f767e", "#8b929b"),
    "button_primary_background_fill": ("#1f5fbf", "#56b4e9"),
    "button_primary_background_fill_hover": ("#184d9c", "#7cc6f0"),
    "button_primary_border_color": ("#1f5fbf", "#56b4e9"),
    "button_primary_text_color": ("#ffffff", "#0b1117"),
    "button_secondary_background_fill": ("#ffffff", "#1b1e25"),
    "button_secondary_background_fill_hover": ("#f4f2ec", "#23272f"),
    "button_secondary_border_color": ("#d8d5cd", "#3a404b"),
    "button_secondary_text_color": ("#1b1f24", "#e9ebee"),
    "slider_color": ("#1f5fbf", "#56b4e9"),
    "checkbox_background_color_selected": ("#1f5fbf", "#56b4e9"),
    "checkbox_border_color_selected": ("#1f5fbf", "#56b4e9"),
    "link_text_color": ("#1f5fbf", "#56b4e9"),
    "panel_background_fill": ("transparent", "transparent"),
    "table_even_background_fill": ("#ffffff", "#1b1e25"),
    "table_odd_background_fill": ("#faf9f5", "#1e2229"),
}
# The same by day and by night.
_SHAPES = {
    "block_border_width": "0px",
    "block_padding": "0px",
    "block_radius": "10px",
    "block_label_padding": "0px",
    "block_shadow": "none",
    "block_title_text_size": "13px",
    "block_title_text_weight": "400",
    "button_large_radius": "8px",
    "button_large_text_size": "14px",
    "button_small_radius": "8px",
    "button_border_width": "1px",
    "input_radius": "8px",
    "input_shadow": "none",
    "input_shadow_focus": "none",
    "layout_gap": "14px",
    "form_gap_width": "0px",
    "section_header_text_size": "13px",
}


def make_theme() -> gr.themes.Base:
    """The theme, with no font that would have to be fetched."""
    theme = gr.themes.Base(
        primary_hue=gr.themes.colors.blue,
        neutral_hue=gr.themes.colors.gray,
        font=_SANS,
        font_mono=_MONO,
        radius_size=gr.themes.sizes.radius_md,
    )
    colours = {name: light for name, (light, _) in _PALETTE.items()}
    colours |= {f"{name}_dark": dark for name, (_, dark) in _PALETTE.items()}
    return theme.set(**colours, **_SHAPES)
