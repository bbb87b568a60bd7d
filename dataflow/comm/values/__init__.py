"""Values as plain data, and back: what `codec` needs to know about each kind of value. Pure.

A value arrives alike or is refused by name; nothing arrives as something else.

- `moments`: dates and times with their zones.
- `arrays`: numpy's scalars and arrays.
- `containers`: the containers of Python's `collections`.
- `objects`: instances of the program's classes (dataclasses, named tuples, enums).
- `pretenders`: values that msgpack takes for bytes or for an extension of ours.
- `refusal`: what the user is told about anything else.
- `shapes`: what whoever decodes requires of plain data that another process sent.
"""
