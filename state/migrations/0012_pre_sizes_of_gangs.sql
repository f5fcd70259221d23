-- For how many members a gang was charged, and for how many leaf cells each was reckoned with. Members
-- that say it has more, or ask for more, are charged on top: a small first one would otherwise let
-- all of them in. Unknown is whatever they say.
ALTER TABLE charges ADD COLUMN gang_size integer, ADD COLUMN leaf_count_each integer;
