"""Groups of rows, by the name under which measures and displays know them."""

from calibrant.engines.groups import Group, group_rows

__all__ = ["Group", "group_rows"]
