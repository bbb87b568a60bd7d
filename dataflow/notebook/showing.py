"""A run in a notebook: a picture that follows it, and a button. Needs IPython; the button, ipywidgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from dataflow.notebook.page import page

if TYPE_CHECKING:
    from dataflow.notebook.running import LiveRun

R = TypeVar("R")


def show(run: LiveRun[R]) -> None:
    """Shows a run where the cell's output goes, and again after each look."""
    try:
        import ipywidgets
    except ModuleNotFoundError:
        _show_plain(run)
        return
    from IPython.display import display

    view = ipywidgets.HTML(value=_page(run))
    button = ipywidgets.Button(description="Stop", icon="stop", disabled=run.over)

    def stop(_: object) -> None:
        button.disabled = True
        run.stop()

    def changed() -> None:
        view.value = _page(run)
        button.disabled = run.state != "running"

    button.on_click(stop)
    run.watch(changed)
    display(ipywidgets.VBox([view, button]))
    changed()  # it may have ended meanwhile


def _show_plain(run: LiveRun[R]) -> None:
    from IPython.display import HTML, display

    handle = display(HTML(_page(run)), display_id=True)
    run.watch(lambda: handle.update(HTML(_page(run))))


def _page(run: LiveRun[R]) -> str:
    return page(run.name, run.state, list(run.looks), run.problem)
