"""The command line: typer commands, rich output. Heavy packages are imported inside the commands."""
