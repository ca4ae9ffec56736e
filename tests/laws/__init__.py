"""What the laws are stated of (`subjects`), who claims which (`claims`), and on what (`arrays`)."""
