-- Releases of an audit log in PostgreSQL: of one app, for others may use the log, too.
INSTALL postgres;
LOAD postgres;
ATTACH 'dbname=shoal host=localhost user=reader' AS log (TYPE postgres, READ_ONLY);
CREATE OR REPLACE TABLE bodies AS SELECT CAST(body AS JSON) AS body FROM log.release WHERE app = 'shoal';
