"""The command ``leafledger``: subcommands, options, and terminal output."""
