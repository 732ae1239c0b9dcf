"""SQL of the views for readers: releases, every number of every release, and the budget.

`releases` has what is in the JSON of a release as columns. NULL stands for the group of a metric without groups, and
for a value that is not one number (several coordinates, a distribution). The ends of a range are exact text, such as
0, -5 or 1/3. `estimates` has a row for each number: a value that is a list, or an object of numbers, lists and objects,
is taken apart, and the number in the same place is taken out of noise_sd, low and high. Where there is no value the
ends of the interval say which numbers there would be. A migration that changes one of the tables drops the views first,
and makes them again.
"""

SQLITE_RELEASES = """
CREATE VIEW releases AS
SELECT app, metric, version, group_name, seq, at AS until, value, noise_sd, low, high, samples,
    CASE WHEN statistic = 'mean' AND value IS NOT NULL THEN noise_sd >
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
        json_extract(v.parameters, '$.of.kind') AS statistic,
        json_extract(v.parameters, '$.of.values.ranges[0][0]') AS low_end,
        json_extract(v.parameters, '$.of.values.ranges[0][1]') AS high_end
    FROM release r JOIN metric_version v ON v.app = r.app AND v.metric = r.metric AND v.version = r.version
) AS fields
"""

# PostgreSQL reads no JSON in which a text holds NUL, as a group may: the view reads the fields without it.
POSTGRESQL_RELEASES = r"""
CREATE VIEW releases AS
SELECT app, metric, version, group_name, seq, at AS until, value, noise_sd, low, high, samples,
    CASE WHEN statistic = 'mean' AND value IS NOT NULL THEN noise_sd >
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
        parameters -> 'of' ->> 'kind' AS statistic,
        parameters #>> '{of,values,ranges,0,0}' AS low_end,
        parameters #>> '{of,values,ranges,0,1}' AS high_end
    FROM (
        SELECT r.*, v.unit, v.state, v.relation, CAST(v.parameters AS json) AS parameters,
            CAST(regexp_replace(r.body, '(\\\\)|\\u0000', '\1', 'g') AS json) AS field
        FROM release r JOIN metric_version v ON v.app = r.app AND v.metric = r.metric AND v.version = r.version
    ) AS joined
) AS fields
"""

# A text such as 1/3 as a number.
SQLITE_NUMBER = (
    "(CAST({0} AS REAL) / CASE instr({0}, '/') WHEN 0 THEN 1.0 ELSE CAST(substr({0}, instr({0}, '/') + 1) AS REAL) END)"
)
POSTGRESQL_NUMBER = (
    "(CAST(split_part({0}, '/', 1) AS double precision)"
    " / CAST(COALESCE(NULLIF(split_part({0}, '/', 2), ''), '1') AS double precision))"
)

PART = """CASE WHEN part = 'quantiles' THEN 'quantile' WHEN part IN ('mean', 'variance', 'histogram', 'cdf') THEN part
        ELSE 'value' END AS part"""
# Of a bin: its number, and its ends.
BIN = """CASE WHEN part IN ('histogram', 'cdf') THEN place + 1 END AS bin,
    CASE WHEN part IN ('histogram', 'cdf') THEN low_end + (high_end - low_end) * place / bins END AS bin_low,
    CASE WHEN part IN ('histogram', 'cdf') THEN low_end + (high_end - low_end) * (place + 1) / bins END AS bin_high"""

# The place of a number is a path of json_tree, such as $.value.quantiles."0.05"; `inside` is what follows its first
# name. Slots and windows are whole seconds long, and end at whole seconds.
SQLITE_ESTIMATES = f"""
CREATE VIEW estimates AS
SELECT app, metric, version, group_name, seq,
    strftime('%Y-%m-%dT%H:%M:%SZ', at, '-' || (span / 1000000) || ' seconds') AS since, at AS until, statistic,
    {PART},
    CASE WHEN json_array_length(names) = 1 THEN json_extract(names, '$[0]')
        WHEN typeof(place) = 'integer' THEN json_extract(names, '$[' || place || ']') END AS field,
    CASE WHEN part = 'quantiles' THEN CAST(place AS REAL) END AS quantile,
    {BIN},
    CAST(json_extract(body, '$.value' || inside) AS REAL) AS value,
    CAST(json_extract(body, '$.noise_sd' || inside) AS REAL) AS noise_sd,
    CAST(json_extract(body, '$.low' || inside) AS REAL) AS low,
    CAST(json_extract(body, '$.high' || inside) AS REAL) AS high,
    CAST(json_extract(body, '$.samples') AS REAL) AS samples,
    CAST(json_extract(body, '$.count') AS REAL) AS count,
    CAST(json_extract(body, '$.count_sd') AS REAL) AS count_sd,
    unit, relation,
    CAST(json_extract(body, '$.epsilon') AS REAL) AS epsilon,
    CAST(json_extract(body, '$.delta') AS REAL) AS delta,
    state, id
FROM (
    SELECT r.app, r.metric, r.version, NULLIF(r."group", '') AS group_name, r.seq, r.at, r.id, r.body,
        v.unit, v.relation, v.state,
        json_extract(v.parameters, '$.of.kind') AS statistic,
        COALESCE(
            json_extract(v.parameters, '$.of.values.fields.names'), json_extract(v.parameters, '$.of.fields.names')
        ) AS names,
        CASE WHEN json_extract(v.parameters, '$.at.kind') = 'Slots'
            THEN json_extract(v.parameters, '$.at.length.microseconds')
            WHEN json_extract(v.parameters, '$.at.decay.kind') = 'window'
            THEN json_extract(v.parameters, '$.at.decay.length') END AS span,
        {SQLITE_NUMBER.format("json_extract(v.parameters, '$.of.values.ranges[0][0]')")} AS low_end,
        {SQLITE_NUMBER.format("json_extract(v.parameters, '$.of.values.ranges[0][1]')")} AS high_end,
        substr(n.fullkey, CASE WHEN n.fullkey LIKE '$.low%' THEN 6 ELSE 8 END) AS inside,
        n.key AS place,
        CASE WHEN n.path IN ('$.value', '$.low') THEN n.key
            ELSE substr(n.path, CASE WHEN n.path LIKE '$.low%' THEN 7 ELSE 9 END) END AS part,
        json_array_length(r.body, n.path) AS bins
    FROM release r JOIN metric_version v ON v.app = r.app AND v.metric = r.metric AND v.version = r.version
    JOIN json_tree(r.body, CASE json_type(r.body, '$.value') WHEN 'null' THEN '$.low' ELSE '$.value' END) n
    WHERE n.type NOT IN ('object', 'array')
) AS fields
"""  # noqa: S608 - own names

# As in `releases`: PostgreSQL reads no JSON in which a text holds NUL. OFFSET 0: each body is read once.
POSTGRESQL_ESTIMATES = rf"""
CREATE VIEW estimates AS
SELECT app, metric, version, group_name, seq,
    to_char(CAST(at AS timestamptz) AT TIME ZONE 'UTC' - make_interval(secs => span / 1000000),
        'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS since,
    at AS until, parameters -> 'of' ->> 'kind' AS statistic,
    {PART},
    CASE WHEN json_array_length(names) = 1 THEN names ->> 0 ELSE names ->> place END AS field,
    quantile,
    {BIN},
    CAST(body #>> (ARRAY['value'] || inside) AS double precision) AS value,
    CAST(body #>> (ARRAY['noise_sd'] || inside) AS double precision) AS noise_sd,
    CAST(body #>> (ARRAY['low'] || inside) AS double precision) AS low,
    CAST(body #>> (ARRAY['high'] || inside) AS double precision) AS high,
    CAST(body ->> 'samples' AS double precision) AS samples,
    CAST(body ->> 'count' AS double precision) AS count,
    CAST(body ->> 'count_sd' AS double precision) AS count_sd,
    unit, relation,
    CAST(body ->> 'epsilon' AS double precision) AS epsilon,
    CAST(body ->> 'delta' AS double precision) AS delta,
    state, id
FROM (
    SELECT r.app, r.metric, r.version, NULLIF(r."group", '') AS group_name, r.seq, r.at, r.id, v.unit, v.relation,
        v.state, p.parameters, b.body, n.part, n.place, n.quantile, n.inside, n.bins,
        COALESCE(p.parameters #> '{{of,values,fields,names}}', p.parameters #> '{{of,fields,names}}') AS names,
        CAST(CASE WHEN p.parameters #>> '{{at,kind}}' = 'Slots' THEN p.parameters #>> '{{at,length,microseconds}}'
            WHEN p.parameters #>> '{{at,decay,kind}}' = 'window' THEN p.parameters #>> '{{at,decay,length}}' END
            AS double precision) AS span,
        {POSTGRESQL_NUMBER.format("(p.parameters #>> '{of,values,ranges,0,0}')")} AS low_end,
        {POSTGRESQL_NUMBER.format("(p.parameters #>> '{of,values,ranges,0,1}')")} AS high_end
    FROM release r JOIN metric_version v ON v.app = r.app AND v.metric = r.metric AND v.version = r.version
    CROSS JOIN LATERAL (SELECT CAST(v.parameters AS json) AS parameters OFFSET 0) AS p
    CROSS JOIN LATERAL (
        SELECT CAST(regexp_replace(r.body, '(\\\\)|\\u0000', '\1', 'g') AS jsonb) AS body OFFSET 0
    ) AS b
    CROSS JOIN LATERAL (
        SELECT CASE jsonb_typeof(b.body -> 'value') WHEN 'null' THEN b.body -> 'low' ELSE b.body -> 'value' END AS shape
        OFFSET 0
    ) AS s
    CROSS JOIN LATERAL (
        SELECT CAST(NULL AS text) AS part, CAST(NULL AS integer) AS place, CAST(NULL AS double precision) AS quantile,
            CAST(ARRAY[] AS text[]) AS inside, CAST(NULL AS integer) AS bins
        WHERE jsonb_typeof(s.shape) NOT IN ('object', 'array')
        UNION ALL
        SELECT NULL, place, NULL, ARRAY[CAST(place AS text)], NULL
        FROM generate_series(0, CASE jsonb_typeof(s.shape) WHEN 'array' THEN jsonb_array_length(s.shape) END - 1)
            AS place
        UNION ALL
        SELECT one.key, inner_place.place, inner_place.quantile, ARRAY[one.key] || inner_place.inside, inner_place.bins
        FROM jsonb_each(CASE jsonb_typeof(s.shape) WHEN 'object' THEN s.shape END) AS one
        CROSS JOIN LATERAL (
            SELECT CAST(NULL AS integer) AS place, CAST(NULL AS double precision) AS quantile,
                CAST(ARRAY[] AS text[]) AS inside, CAST(NULL AS integer) AS bins
            WHERE jsonb_typeof(one.value) NOT IN ('object', 'array')
            UNION ALL
            SELECT place, NULL, ARRAY[CAST(place AS text)], jsonb_array_length(one.value)
            FROM generate_series(
                0, CASE jsonb_typeof(one.value) WHEN 'array' THEN jsonb_array_length(one.value) END - 1
            ) AS place
            UNION ALL
            SELECT NULL, CAST(share AS double precision), ARRAY[share], NULL
            FROM jsonb_object_keys(CASE jsonb_typeof(one.value) WHEN 'object' THEN one.value END) AS share
        ) AS inner_place
    ) AS n
) AS fields
"""  # noqa: S608 - own names

# What is left is 0 where only the rounding of a sum of exact amounts would be.
BUDGET = """
CREATE VIEW budget AS
SELECT ledger_unit, ledger_relation, budget_epsilon, budget_delta, charged_epsilon, charged_delta,
    CASE WHEN budget_epsilon - charged_epsilon > budget_epsilon * 1e-12
        THEN budget_epsilon - charged_epsilon ELSE 0.0 END AS left_epsilon,
    CASE WHEN budget_delta - charged_delta > budget_delta * 1e-12
        THEN budget_delta - charged_delta ELSE 0.0 END AS left_delta,
    app, metric, version, topic, statistic, state, unit, relation, epsilon, delta, charge_epsilon, charge_delta,
    registered
FROM (
    SELECT b.unit AS ledger_unit, b.relation AS ledger_relation,
        {budget_epsilon} AS budget_epsilon, {budget_delta} AS budget_delta,
        SUM({charge_epsilon}) OVER () AS charged_epsilon, SUM({charge_delta}) OVER () AS charged_delta,
        v.app, v.metric, v.version, {topic} AS topic, {statistic} AS statistic, v.state, v.unit, v.relation,
        {epsilon} AS epsilon, {delta} AS delta, {charge_epsilon} AS charge_epsilon, {charge_delta} AS charge_delta,
        v.registered
    FROM ledger_budget b CROSS JOIN metric_version v
) AS amounts
"""
AMOUNTS = {
    "budget_epsilon": "b.epsilon", "budget_delta": "b.delta", "epsilon": "v.epsilon", "delta": "v.delta",
    "charge_epsilon": "v.charge_epsilon", "charge_delta": "v.charge_delta",
}  # fmt: skip


def statements(dialect: str) -> tuple[str, ...]:
    """The statements that make the views, `dialect` being postgresql or sqlite."""
    is_postgresql = dialect == "postgresql"
    number = POSTGRESQL_NUMBER if is_postgresql else SQLITE_NUMBER
    amounts = {name: number.format(column) for name, column in AMOUNTS.items()}
    key = "CAST(v.parameters AS json) -> '{}' ->> '{}'" if is_postgresql else "json_extract(v.parameters, '$.{}.{}')"
    budget = BUDGET.format(**amounts, topic=key.format("source", "topic"), statistic=key.format("of", "kind"))
    if is_postgresql:
        return POSTGRESQL_RELEASES, POSTGRESQL_ESTIMATES, budget
    return SQLITE_RELEASES, SQLITE_ESTIMATES, budget
