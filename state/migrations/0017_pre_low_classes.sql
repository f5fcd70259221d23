-- As before (0013), with what is held in classes that are not high: rules may compare it
-- (`occupiedLow`), so a decision holds only as long as it has not grown.
CREATE OR REPLACE FUNCTION ledger_exceeded(
    charge charges, usage holdings[], limits jsonb
) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    found jsonb;
BEGIN
    SELECT jsonb_agg(jsonb_build_object('index', l.index, 'used', l.used - l.asked) ORDER BY l.index)
    INTO found
    FROM (
        SELECT
            given.index,
            given.most,
            given.measure LIKE 'hours%' AS is_hours,
            CASE
                WHEN given.measure LIKE 'hours%' THEN 0
                WHEN given.measure = 'gangs' THEN 1
                ELSE charge.leaf_count
            END AS asked,
            CASE given.measure
                WHEN 'leaf_cells' THEN held.leaf_count
                WHEN 'leaf_cells_high' THEN held.leaf_count_high
                WHEN 'leaf_cells_low' THEN held.leaf_count - held.leaf_count_high
                WHEN 'leaf_cells_of_type' THEN (held.by_leaf_type ->> given.leaf_type)::bigint
                WHEN 'gangs' THEN held.gang_count
                WHEN 'hours_day' THEN held.leaf_micros - held.day_base
                WHEN 'hours_week' THEN held.leaf_micros - held.week_base
                WHEN 'hours_month' THEN held.leaf_micros - held.month_base
            END - CASE
                WHEN held.overflow IS NULL OR given.group_name = '' THEN 0
                WHEN given.measure = 'leaf_cells_of_type' THEN
                    coalesce((held.overflow -> 'by_leaf_type' ->> given.leaf_type)::bigint, 0)
                ELSE coalesce((held.overflow ->> given.measure)::bigint, 0)
            END AS used
        FROM jsonb_to_recordset(limits) AS given (
            index integer, user_name text, group_name text, measure text, leaf_type text, most bigint
        )
        JOIN unnest(usage) AS held
            ON held.user_name = given.user_name AND held.group_name = given.group_name
    ) AS l
    -- How long a gang will run is not known: it is refused once no hour is left.
    WHERE l.used > l.most OR (l.is_hours AND l.used = l.most);
    RETURN found;
END $$;
