"""What every component that acts on a cluster needs: clients, informers, queues, clocks, events, leases."""
