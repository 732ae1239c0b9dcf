-- Each release once, as columns; values that are not one number stay in its body. Times are UTC.
CREATE OR REPLACE TABLE releases AS
SELECT body ->> '$.metric' AS metric, CAST(body ->> '$.version' AS INTEGER) AS version, body ->> '$.group' AS "group",
    CAST(body ->> '$.seq' AS BIGINT) AS seq, CAST(body ->> '$.at' AS TIMESTAMP) AS "at",
    TRY_CAST(body ->> '$.value' AS DOUBLE) AS value, TRY_CAST(body ->> '$.noise_sd' AS DOUBLE) AS noise_sd,
    TRY_CAST(body ->> '$.low' AS DOUBLE) AS low, TRY_CAST(body ->> '$.high' AS DOUBLE) AS high,
    TRY_CAST(body ->> '$.samples' AS DOUBLE) AS samples, body ->> '$.id' AS id, body
FROM bodies
QUALIFY row_number() OVER (PARTITION BY id) = 1;

-- The latest of each metric and group, also if it has no value.
SELECT metric, "group", "at", value, low, high
FROM releases
QUALIFY seq = max(seq) OVER (PARTITION BY metric, version, "group")
ORDER BY metric, "group";

-- Values that are not one number: the bins of a distribution, each with its interval.
SELECT "at", bin, CAST(body ->> ('$.value.histogram[' || bin || ']') AS DOUBLE) AS share,
    CAST(body ->> ('$.low.histogram[' || bin || ']') AS DOUBLE) AS low,
    CAST(body ->> ('$.high.histogram[' || bin || ']') AS DOUBLE) AS high
FROM releases, unnest(range(CAST(json_array_length(body, '$.value.histogram') AS BIGINT))) AS bins(bin)
WHERE metric = 'amounts'
ORDER BY "at", bin;

COPY (SELECT * FROM releases ORDER BY metric, "group", seq) TO 'releases.parquet';
