"""Where rows live, and how their columns are read."""
