from dray.cli.main import main

main()
