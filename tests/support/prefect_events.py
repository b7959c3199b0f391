"""The events that Prefect's own client would send to an API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prefect.events import Event


@contextmanager
def recorded_events() -> Iterator[Callable[[], list[Event]]]:
    """A function that returns what was emitted so far."""
    from prefect.events.clients import AssertingEventsClient
    from prefect.events.worker import EventsWorker
    from prefect.settings import PREFECT_API_URL, temporary_settings

    def sent() -> list[Event]:
        EventsWorker.instance().wait_until_empty()
        # A client that has sent nothing yet has no list.
        return [event for client in AssertingEventsClient.all for event in getattr(client, "events", ())]

    EventsWorker.set_client_override(AssertingEventsClient)
    try:
        with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
            yield sent
            EventsWorker.instance().drain()
    finally:
        EventsWorker.set_client_override(None)
        AssertingEventsClient.reset()
