-- How many releases of each week have no value, by event time: a row when the watermark says that the week is over.

SET 'sql-client.execution.result-mode' = 'tableau';

SELECT metric, window_start, COUNT(*) AS releases, COUNT(*) - COUNT(`value`) AS without_value
FROM TABLE(TUMBLE(TABLE releases, DESCRIPTOR(`at`), INTERVAL '7' DAY))
GROUP BY metric, window_start, window_end;
