"""The pages of the app, one a file, in the order of the navigation; the first is the front page.

A new page takes its own file and its line here.

Import levels; a module imports only from its right (a test enforces it):

    race_page > page_record
"""

from specviz.views.web.pages.page_record import Page, PageContext
from specviz.views.web.pages.race_page import RACE_PAGE

PAGES: tuple[Page, ...] = (RACE_PAGE,)

__all__ = ["PAGES", "Page", "PageContext"]
