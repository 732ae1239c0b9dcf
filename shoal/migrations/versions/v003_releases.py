"""A view of the releases: what is in their JSON as columns, for readers of SQL.

NULL stands for the group of a metric without groups, and for a value that is not one number (several coordinates, a
distribution). The ends of a range are exact text, such as 0, -5 or 1/3. A later step that changes one of the tables
drops the view first, and makes it again.
"""

from alembic import op

revision = "003"
down_revision = "002"

SQLITE = """
CREATE VIEW releases AS
SELECT app, metric, version, group_name, seq, at, value, noise_sd, low, high, samples,
    CASE WHEN statistic IN ('mean', 'slot-mean') AND value IS NOT NULL THEN noise_sd >
        CAST(high_end AS REAL) / CASE instr(high_end, '/') WHEN 0 THEN 1.0
            ELSE CAST(substr(high_end, instr(high_end, '/') + 1) AS REAL) END
        - CAST(low_end AS REAL) / CASE instr(low_end, '/') WHEN 0 THEN 1.0
            ELSE CAST(substr(low_end, instr(low_end, '/') + 1) AS REAL) END
    END AS noise_exceeds_range,
    unit, state, id, body
FROM (
    SELECT r.app, r.metric, r.version, NULLIF(r."group", '') AS group_name, r.seq, r.at, v.unit, v.state, r.id, r.body,
        CASE WHEN json_type(r.body, '$.value') IN ('integer', 'real')
            THEN CAST(json_extract(r.body, '$.value') AS REAL) END AS value,
        CASE WHEN json_type(r.body, '$.noise_sd') IN ('integer', 'real')
            THEN CAST(json_extract(r.body, '$.noise_sd') AS REAL) END AS noise_sd,
        CASE WHEN json_type(r.body, '$.low') IN ('integer', 'real')
            THEN CAST(json_extract(r.body, '$.low') AS REAL) END AS low,
        CASE WHEN json_type(r.body, '$.high') IN ('integer', 'real')
            THEN CAST(json_extract(r.body, '$.high') AS REAL) END AS high,
        CASE WHEN json_type(r.body, '$.samples') = 'integer'
            THEN json_extract(r.body, '$.samples') END AS samples,
        json_extract(v.parameters, '$.statistic') AS statistic,
        json_extract(v.parameters, '$.range[0]') AS low_end,
        json_extract(v.parameters, '$.range[1]') AS high_end
    FROM release r JOIN metric_version v ON v.app = r.app AND v.metric = r.metric AND v.version = r.version
) AS fields
"""

# PostgreSQL reads no JSON in which a text holds NUL, as a group may: the view reads the fields without it.
POSTGRESQL = r"""
CREATE VIEW releases AS
SELECT app, metric, version, group_name, seq, at, value, noise_sd, low, high, samples,
    CASE WHEN statistic IN ('mean', 'slot-mean') AND value IS NOT NULL THEN noise_sd >
        CAST(split_part(high_end, '/', 1) AS double precision)
            / CAST(COALESCE(NULLIF(split_part(high_end, '/', 2), ''), '1') AS double precision)
        - CAST(split_part(low_end, '/', 1) AS double precision)
            / CAST(COALESCE(NULLIF(split_part(low_end, '/', 2), ''), '1') AS double precision)
    END AS noise_exceeds_range,
    unit, state, id, body
FROM (
    SELECT app, metric, version, NULLIF("group", '') AS group_name, seq, at, unit, state, id, body,
        CASE WHEN json_typeof(field -> 'value') = 'number'
            THEN CAST(field ->> 'value' AS double precision) END AS value,
        CASE WHEN json_typeof(field -> 'noise_sd') = 'number'
            THEN CAST(field ->> 'noise_sd' AS double precision) END AS noise_sd,
        CASE WHEN json_typeof(field -> 'low') = 'number' THEN CAST(field ->> 'low' AS double precision) END AS low,
        CASE WHEN json_typeof(field -> 'high') = 'number' THEN CAST(field ->> 'high' AS double precision) END AS high,
        CASE WHEN json_typeof(field -> 'samples') = 'number' THEN CAST(field ->> 'samples' AS bigint) END AS samples,
        parameters ->> 'statistic' AS statistic,
        parameters -> 'range' ->> 0 AS low_end,
        parameters -> 'range' ->> 1 AS high_end
    FROM (
        SELECT r.*, v.unit, v.state, CAST(v.parameters AS json) AS parameters,
            CAST(regexp_replace(r.body, '(\\\\)|\\u0000', '\1', 'g') AS json) AS field
        FROM release r JOIN metric_version v ON v.app = r.app AND v.metric = r.metric AND v.version = r.version
    ) AS joined
) AS fields
"""


def upgrade() -> None:
    """Make the view."""
    op.execute({"sqlite": SQLITE, "postgresql": POSTGRESQL}[op.get_bind().dialect.name])


def downgrade() -> None:
    """Take it away; it holds nothing of its own."""
    op.execute("DROP VIEW releases")
