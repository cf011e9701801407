"""`segue` that does not wait for a database server which cannot be reached."""

from segue.cli import main
from segue.storage import postgres

if __name__ == "__main__":
    postgres.PATIENCE_AT_THE_DOOR = 0.1
    main()
