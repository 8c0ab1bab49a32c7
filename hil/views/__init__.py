"""Views of a run: terminal, browser, figures and report."""
