-- Runs and sums are read by user, by group, by VC, by outcome or by time. Without an index for it, a
-- question about few runs reads all of them.

CREATE INDEX gang_history_group ON gang_history (group_name, asked_at DESC, run DESC);
CREATE INDEX gang_history_vc ON gang_history (vc, asked_at DESC, run DESC);
-- Most runs succeed: the newest of them are found soon.
CREATE INDEX gang_history_outcome ON gang_history (outcome, asked_at DESC, run DESC)
    WHERE outcome <> 'succeeded';
CREATE INDEX gang_history_until ON gang_history (coalesce(ended_at, 'infinity'));
CREATE INDEX gang_days_user ON gang_days (user_name, day);
CREATE INDEX gang_days_group ON gang_days (group_name, day);
