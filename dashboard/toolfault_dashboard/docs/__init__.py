"""The documentation of exactly this version, as the running server shows it at ``/docs``."""

from toolfault_dashboard.docs.pages import DocsPage, docs_image, docs_names, docs_page

__all__ = ["DocsPage", "docs_image", "docs_names", "docs_page"]
