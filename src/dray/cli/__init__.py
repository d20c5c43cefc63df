"""The `dray` command. Turns arguments into calls and results into text; decides nothing."""
