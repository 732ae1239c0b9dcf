"""`shoal topics`: creates what is missing, verifies what exists."""

import asyncio

from shoal.agents.audit.session import load_config
from shoal.agents.cli.output import AsJson, ConfigPath, result, say
from shoal.agents.kafka.configured import needed_settings
from shoal.agents.kafka.topics import create_sources, verify_topics


def topics(config: ConfigPath, as_json: AsJson = False) -> None:
    """Create the topics that are missing, and verify the partition counts and policies of the others.

    Source topics are made with `[kafka] partitions` partitions and without retention; workers refuse to start
    without them.

    Example: shoal topics shoal.toml
    """
    found = load_config(config)
    settings = needed_settings(found, config)
    made = asyncio.run(create_sources(settings, found.topics))
    verified = asyncio.run(verify_topics(settings, found.topics))
    warnings = [*verified.warnings, *verified.durability]
    for warning in warnings:
        say(f"shoal: warning: {warning}")
    created = sorted({*made, *verified.created})
    fields = {"topics": verified.partitions, "created": created, "warnings": warnings}
    lines = [
        f"{name}: {count} partitions{', made' if name in created else ''}"
        for name, count in verified.partitions.items()
    ]
    result(fields, as_json=as_json, text=lambda: "\n".join(lines))
