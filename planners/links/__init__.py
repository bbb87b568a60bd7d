"""How moves go over the links between nodes (section 3.2; 5.1).

- `schedule`: which moves go over which links when. `birkhoff`: the phases in which no critical link idles.
- `strategies`: progressive mini-migrations and schedules as strategies for a `megaphone` controller.
"""
