"""The memory half: columns as compact arrays that many read while one writes."""
