"""``python -m mipforest``."""

from mipforest.cli.main import run

if __name__ == "__main__":
    run()
