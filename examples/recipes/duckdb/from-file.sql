-- Releases of a file, one a line, as `shoal run --output` and the recipe with kcat write them.
CREATE OR REPLACE TABLE bodies AS
SELECT body FROM read_json_objects('releases.jsonl', format = 'newline_delimited') AS file(body);
