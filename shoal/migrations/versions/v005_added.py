"""Metric versions that were added to what workers read already, and the view of releases with noisy counts.

The new columns of the view stand at its end, so that PostgreSQL can replace it and keep the rights to it. A log from
before has no such versions: its metrics that protect presence begin where they did.
"""

import sqlalchemy as sa
from alembic import op

revision = "005"
down_revision = "004"

SQLITE = """
CREATE VIEW releases AS
SELECT app, metric, version, group_name, seq, at, value, noise_sd, low, high, samples,
    CASE WHEN statistic IN ('mean', 'slot-mean') AND value IS NOT NULL THEN noise_sd >
        CAST(high_end AS REAL) / CASE instr(high_end, '/') WHEN 0 THEN 1.0
            ELSE CAST(substr(high_end, instr(high_end, '/') + 1) AS REAL) END
        - CAST(low_end AS REAL) / CASE instr(low_end, '/') WHEN 0 THEN 1.0
            ELSE CAST(substr(low_end, instr(low_end, '/') + 1) AS REAL) END
    END AS noise_exceeds_range,
    unit, state, id, body, count, count_sd, relation
FROM (
    SELECT r.app, r.metric, r.version, NULLIF(r."group", '') AS group_name, r.seq, r.at, v.unit, v.state, r.id, r.body,
        v.relation,
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
        CASE WHEN json_type(r.body, '$.count') IN ('integer', 'real')
            THEN CAST(json_extract(r.body, '$.count') AS REAL) END AS count,
        CASE WHEN json_type(r.body, '$.count_sd') IN ('integer', 'real')
            THEN CAST(json_extract(r.body, '$.count_sd') AS REAL) END AS count_sd,
        json_extract(v.parameters, '$.statistic') AS statistic,
        json_extract(v.parameters, '$.range[0]') AS low_end,
        json_extract(v.parameters, '$.range[1]') AS high_end
    FROM release r JOIN metric_version v ON v.app = r.app AND v.metric = r.metric AND v.version = r.version
) AS fields
"""

# As before: PostgreSQL reads no JSON in which a text holds NUL.
POSTGRESQL = r"""
CREATE OR REPLACE VIEW releases AS
SELECT app, metric, version, group_name, seq, at, value, noise_sd, low, high, samples,
    CASE WHEN statistic IN ('mean', 'slot-mean') AND value IS NOT NULL THEN noise_sd >
        CAST(split_part(high_end, '/', 1) AS double precision)
            / CAST(COALESCE(NULLIF(split_part(high_end, '/', 2), ''), '1') AS double precision)
        - CAST(split_part(low_end, '/', 1) AS double precision)
            / CAST(COALESCE(NULLIF(split_part(low_end, '/', 2), ''), '1') AS double precision)
    END AS noise_exceeds_range,
    unit, state, id, body, count, count_sd, relation
FROM (
    SELECT app, metric, version, NULLIF("group", '') AS group_name, seq, at, unit, state, id, body, relation,
        CASE WHEN json_typeof(field -> 'value') = 'number'
            THEN CAST(field ->> 'value' AS double precision) END AS value,
        CASE WHEN json_typeof(field -> 'noise_sd') = 'number'
            THEN CAST(field ->> 'noise_sd' AS double precision) END AS noise_sd,
        CASE WHEN json_typeof(field -> 'low') = 'number' THEN CAST(field ->> 'low' AS double precision) END AS low,
        CASE WHEN json_typeof(field -> 'high') = 'number' THEN CAST(field ->> 'high' AS double precision) END AS high,
        CASE WHEN json_typeof(field -> 'samples') = 'number' THEN CAST(field ->> 'samples' AS bigint) END AS samples,
        CASE WHEN json_typeof(field -> 'count') = 'number'
            THEN CAST(field ->> 'count' AS double precision) END AS count,
        CASE WHEN json_typeof(field -> 'count_sd') = 'number'
            THEN CAST(field ->> 'count_sd' AS double precision) END AS count_sd,
        parameters ->> 'statistic' AS statistic,
        parameters -> 'range' ->> 0 AS low_end,
        parameters -> 'range' ->> 1 AS high_end
    FROM (
        SELECT r.*, v.unit, v.state, v.relation, CAST(v.parameters AS json) AS parameters,
            CAST(regexp_replace(r.body, '(\\\\)|\\u0000', '\1', 'g') AS json) AS field
        FROM release r JOIN metric_version v ON v.app = r.app AND v.metric = r.metric AND v.version = r.version
    ) AS joined
) AS fields
"""


def upgrade() -> None:
    """Add the column, and make the view anew."""
    op.add_column("metric_version", sa.Column("added", sa.Boolean(), nullable=False, server_default=sa.false()))
    if op.get_bind().dialect.name == "postgresql":
        op.execute(POSTGRESQL)
        return
    op.execute("DROP VIEW releases")
    op.execute(SQLITE)


def downgrade() -> None:
    """Refused: an older shoal would let a metric that was added begin with records that must not count."""
    raise NotImplementedError("which records of a metric count depends on when it was added; restore a backup instead")
