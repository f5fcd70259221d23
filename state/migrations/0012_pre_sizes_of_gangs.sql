-- For how many members a gang was charged. Members that say it has more are charged on top: a small
-- first one would otherwise let all of them in. Unknown is whatever they say.
ALTER TABLE charges ADD COLUMN gang_size integer;
