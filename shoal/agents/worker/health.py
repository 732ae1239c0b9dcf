"""Alarms of a worker, which make it unready and are logged once each. Nothing here depends on a value."""

import threading

import structlog

log = structlog.get_logger("shoal.health")

POLICY = "policy"
STRAY_RECORDS = "stray_records"
REPEATED_MESSAGES = "repeated_messages"
MISSING_RELEASE = "missing_release"
EQUIVOCATION = "equivocation"
AUDIT = "audit"
KINDS = (POLICY, STRAY_RECORDS, REPEATED_MESSAGES, MISSING_RELEASE, EQUIVOCATION, AUDIT)


class Health:
    """Alarms of one worker, shared by its parts; safe from any thread."""

    def __init__(self) -> None:
        self._alarms: dict[str, str] = {}
        self._lock = threading.Lock()
        self.running = False

    @property
    def alarms(self) -> dict[str, str]:
        """The first message of each kind of alarm."""
        with self._lock:
            return dict(self._alarms)

    @property
    def ready(self) -> bool:
        return self.running and not self.alarms

    def alarm(self, kind: str, message: str) -> None:
        """Raise an alarm, which a person must look at; the worker stays up and reports that it is not ready."""
        with self._lock:
            known = kind in self._alarms
            self._alarms.setdefault(kind, message)
        if not known:
            log.error("alarm", kind=kind, message=message)

    def all_clear(self, kind: str) -> None:
        """Take an alarm back: its cause has been removed."""
        with self._lock:
            known = self._alarms.pop(kind, None)
        if known is not None:
            log.warning("all_clear", kind=kind)
