"""Draws the pictures of concepts beside this file: `python docs/pictures/draw.py`.

Each is an SVG with a white ground, so that it can be read on a dark page.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

BLUE, ORANGE, GREY, INK, PALE = "#3949ab", "#ef6c00", "#9aa0a6", "#202124", "#eceff1"
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#202124}.small{font-size:11px;fill:#5f6368}"
    ".head{font-weight:600}.white{fill:#fff}"
)


class Drawing:
    """A canvas that gathers its elements."""

    def __init__(self, width: int, height: int, title: str) -> None:
        size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#fff"/>',
        ]

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        self.parts.append(f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>')

    def box(self, x: float, y: float, w: float, h: float, fill: str, stroke: str = "none", inside: str = "") -> None:
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="4" fill="{fill}" stroke="{stroke}">{inside}</rect>'
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, stroke: str = GREY, width: float = 1.5, more: str = ""
    ) -> None:
        self.parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{stroke}" stroke-width="{width}" {more}/>'
        )

    def arrow(self, x1: float, y1: float, x2: float, y2: float, stroke: str = GREY) -> None:
        self.parts.append(
            f'<defs><marker id="a{stroke[1:]}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{stroke}"/></marker></defs>'
        )
        self.line(x1, y1, x2, y2, stroke, 1.8, f'marker-end="url(#a{stroke[1:]})"')

    def save(self, name: str) -> None:
        (Path(__file__).parent / name).write_text("\n".join([*self.parts, "</svg>"]) + "\n")


def frontier() -> None:
    """Three moments of one operator's frontier: two inputs' promises and one message under way."""
    drawing = Drawing(720, 392, "A frontier moves as promises are made and messages are taken")
    moments = (
        ("Worker 0 has promised “nothing before 2”, worker 1 “nothing before 1”.", 2, 1, None, 1),
        ("Worker 1 promises “nothing before 3”. A message of time 1 is still under way: it counts.", 2, 3, 1, 1),
        ("The message has been taken. The lowest of what may still come is 2.", 2, 3, None, 2),
    )
    for row, (words, zero, one, message, front) in enumerate(moments):
        top = 16 + row * 124
        drawing.text(20, top + 14, f"{row + 1}. {words}", "head")
        for time in range(6):
            x = 250 + time * 70
            drawing.box(x, top + 28, 66, 62, "#e3f2e6" if time < front else PALE)
            drawing.text(x + 33, top + 106, f"time {time}", "small", "middle")
        for line, (name, promise) in enumerate((("input of worker 0", zero), ("input of worker 1", one))):
            y = top + 44 + line * 30
            drawing.text(236, y + 4, name, "", "end")
            drawing.arrow(252 + promise * 70, y, 662, y, BLUE)
            drawing.parts.append(f'<circle cx="{252 + promise * 70}" cy="{y}" r="5" fill="{BLUE}"/>')
        if message is not None:
            x = 250 + message * 70
            drawing.box(x + 12, top + 48, 44, 20, ORANGE)
            drawing.text(x + 34, top + 62, "record", "small white", "middle")
        drawing.line(248 + front * 70, top + 22, 248 + front * 70, top + 96, ORANGE, 3)
        drawing.text(676, top + 64, f"⩾ {front}", "head")
    drawing.text(20, 384, "Orange line: the frontier. Green: times that are complete; sums may be given.", "small")
    drawing.save("frontier.svg")


def move() -> None:
    """A bin moves at time 60, in four steps."""
    drawing = Drawing(760, 420, "A bin moves from worker 0 to worker 1 at time 60")
    steps = (
        ("1. The update is known", "“bin 7 to worker 1 at 60”", "58 59", "", True, False, ""),
        ("2. Records go by their time", "59 goes left, 60 and 61 right and wait", "59", "60 61", True, False, ""),
        ("3. The frontier reaches 60", "all before 60 is applied: the state goes", "", "60 61", False, False, "state"),
        ("4. The state is there", "what waited is applied, and the bin goes on", "", "62", False, True, ""),
    )
    for number, (head, words, left, right, old, new, way) in enumerate(steps):
        x, y = 20 + (number % 2) * 370, 16 + (number // 2) * 204
        drawing.box(x, y, 350, 188, "#fafafa", "#dadce0")
        drawing.text(x + 12, y + 22, head, "head")
        drawing.text(x + 12, y + 40, words, "small")
        for side, name in enumerate(("worker 0", "worker 1")):
            left_edge = x + 16 + side * 218
            drawing.box(left_edge, y + 104, 100, 70, "#fff", GREY)
            drawing.text(left_edge + 50, y + 168, name, "small", "middle")
        drawing.text(x + 175, y + 66, "routes by time", "small", "middle")
        drawing.box(x + 145, y + 72, 60, 20, BLUE)
        drawing.text(x + 175, y + 86, "F", "white", "middle")
        for side, times in enumerate((left, right)):
            if times:
                drawing.arrow(x + 150 + side * 50, y + 92, x + 100 + side * 150, y + 116, BLUE)
            for index, time in enumerate(times.split()):
                drawing.box(x + 22 + side * 218 + index * 30, y + 110, 26, 18, PALE, BLUE)
                drawing.text(x + 35 + side * 218 + index * 30, y + 123, time, "small", "middle")
        for side, here in enumerate((old, new)):
            if here:
                drawing.box(x + 40 + side * 218, y + 132, 52, 22, ORANGE)
                drawing.text(x + 66 + side * 218, y + 147, "bin 7", "white", "middle")
        if way:
            drawing.arrow(x + 120, y + 143, x + 230, y + 143, ORANGE)
            drawing.box(x + 148, y + 132, 52, 22, ORANGE)
            drawing.text(x + 174, y + 147, "bin 7", "white", "middle")
    drawing.save("move.svg")


def strategies() -> None:
    """Which of sixteen bins wait, along time, by strategy; the marker walks along it."""
    drawing = Drawing(760, 330, "All at once, fluid and batched: how many bins wait at a time")
    steps = {"all at once": [16], "batched(4)": [4] * 4, "fluid": [1] * 16}
    longest = {
        "all at once": "16 bins wait for the time of 16",
        "batched(4)": "4 bins wait for the time of 4",
        "fluid": "1 bin waits for the time of 1",
    }
    for column, (name, sizes) in enumerate(steps.items()):
        x = 40 + column * 240
        drawing.text(x, 28, name, "head")
        clock, first = 0.0, 0
        cost, gap = 5.0, 3.0
        for size in sizes:
            wide = 2 + cost * size
            for row in range(first, first + size):
                drawing.box(x + clock, 40 + row * 14, wide, 12, ORANGE)
            clock += wide + gap
            first += size
        for row in range(16):
            drawing.line(x, 53 + row * 14, x + 200, 53 + row * 14, PALE, 1)
        drawing.arrow(x, 272, x + 205, 272)
        drawing.text(x + 204, 288, "time", "small", "end")
        drawing.text(x, 306, longest[name], "small")
        drawing.parts.append(
            f'<line x1="{x}" x2="{x}" y1="36" y2="272" stroke="{BLUE}" stroke-width="2">'
            '<animateTransform attributeName="transform" type="translate" from="0 0" to="200 0" dur="6s" '
            'repeatCount="indefinite"/></line>'
        )
    drawing.text(18, 155, "bins", "small", "middle")
    drawing.save("strategies.svg")


if __name__ == "__main__":
    frontier()
    move()
    strategies()
