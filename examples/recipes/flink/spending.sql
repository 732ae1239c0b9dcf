-- What new and returning customers spent, side by side with both intervals: a record for each day, in a topic of its own.

CREATE TABLE spending (
    `at` TIMESTAMP_LTZ(3),
    `new` DOUBLE, new_low DOUBLE, new_high DOUBLE,
    `returning` DOUBLE, returning_low DOUBLE, returning_high DOUBLE,
    PRIMARY KEY (`at`) NOT ENFORCED
) WITH (
    'connector' = 'upsert-kafka',
    'topic' = 'readers.spending',
    'properties.bootstrap.servers' = 'localhost:9092',
    'properties.transaction.timeout.ms' = '600000',
    'sink.delivery-guarantee' = 'exactly-once',
    'sink.transactional-id-prefix' = 'readers-spending',
    'key.format' = 'json',
    'key.json.timestamp-format.standard' = 'ISO-8601',
    'value.format' = 'json',
    'value.json.timestamp-format.standard' = 'ISO-8601'
);

SET 'execution.checkpointing.interval' = '10 s';
SET 'table.dml-sync' = 'true';

-- Of each day and group there is one release: MAX is that one.
INSERT INTO spending
SELECT `at`,
    MAX(number) FILTER (WHERE `group` = 'new'), MAX(low) FILTER (WHERE `group` = 'new'),
    MAX(high) FILTER (WHERE `group` = 'new'),
    MAX(number) FILTER (WHERE `group` = 'returning'), MAX(low) FILTER (WHERE `group` = 'returning'),
    MAX(high) FILTER (WHERE `group` = 'returning')
FROM numbers
WHERE metric = 'spending' AND version = 1
GROUP BY `at`;
