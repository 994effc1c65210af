"""Plans for the next run printed: ``plan_page`` for people, ``plan_data`` for programs, ``renderers`` by form."""
