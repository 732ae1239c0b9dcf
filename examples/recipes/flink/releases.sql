-- The topic of releases as a table, and those of its values that are one number.

CREATE TABLE releases (
    metric STRING,
    version INT,
    `group` STRING,
    seq BIGINT,
    id STRING,
    `at` TIMESTAMP_LTZ(3),
    `value` STRING,  -- a number, or a list or an object as text, or NULL
    low STRING,
    high STRING,
    WATERMARK FOR `at` AS `at` - INTERVAL '7' DAY
) WITH (
    'connector' = 'kafka',
    'topic' = 'shoal.releases',
    'properties.bootstrap.servers' = 'localhost:9092',
    'properties.isolation.level' = 'read_committed',
    'scan.startup.mode' = 'earliest-offset',
    'scan.bounded.mode' = 'latest-offset',  -- ends with what is there now; leave it out to go on
    'scan.watermark.idle-timeout' = '1 min',
    'format' = 'json',
    'json.timestamp-format.standard' = 'ISO-8601'
);

CREATE VIEW numbers AS
SELECT metric, version, `group`, seq, `at`,
    TRY_CAST(`value` AS DOUBLE) AS number, TRY_CAST(low AS DOUBLE) AS low, TRY_CAST(high AS DOUBLE) AS high
FROM releases;
