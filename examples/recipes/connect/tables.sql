CREATE TABLE shoal_release (
    __connect_topic text,
    __connect_partition integer,
    __connect_offset bigint,
    body text NOT NULL,
    PRIMARY KEY (__connect_topic, __connect_partition, __connect_offset)
);
-- No release twice, whatever happens to the topic: the sink would stop.
CREATE UNIQUE INDEX shoal_release_id ON shoal_release (__connect_topic, (body::json ->> 'id'));

CREATE VIEW shoal_releases AS
SELECT one ->> 'metric' AS metric, (one ->> 'version')::integer AS version, one ->> 'group' AS group_name,
    (one ->> 'seq')::bigint AS seq, (one ->> 'at')::timestamptz AS at,
    CASE json_typeof(one -> 'value') WHEN 'number' THEN (one ->> 'value')::double precision END AS value,
    CASE json_typeof(one -> 'noise_sd') WHEN 'number' THEN (one ->> 'noise_sd')::double precision END AS noise_sd,
    CASE json_typeof(one -> 'low') WHEN 'number' THEN (one ->> 'low')::double precision END AS low,
    CASE json_typeof(one -> 'high') WHEN 'number' THEN (one ->> 'high')::double precision END AS high,
    one ->> 'id' AS id, body
FROM (SELECT body, body::json AS one FROM shoal_release) AS releases;
