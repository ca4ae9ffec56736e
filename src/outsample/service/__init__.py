"""A model as a web service: places rows, learns them if asked, and shows them arrive."""
