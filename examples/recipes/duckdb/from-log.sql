-- Releases of the audit log: of one app, for others may use the log, too.
INSTALL sqlite;
LOAD sqlite;
ATTACH 'shoal.db' AS log (TYPE sqlite, READ_ONLY);
CREATE OR REPLACE TABLE bodies AS SELECT CAST(body AS JSON) AS body FROM log.release WHERE app = 'shoal';
