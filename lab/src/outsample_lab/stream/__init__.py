"""Traffic that keeps arriving: who learns from it, and who raises the right alarms."""
