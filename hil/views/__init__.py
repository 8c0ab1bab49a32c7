"""What people see of a run: terminal, browser, figures and report."""
