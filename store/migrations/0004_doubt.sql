-- What an operator answered about what is in doubt is remembered. A worker of version 3 that still runs does not know of
-- it: it puts what was resumed in doubt again. So in-doubt resume is for when all workers are those of this version.

-- Which part of the ledger doubt_before is about: the records below that offset. Null where such a worker made the row.
ALTER TABLE fermata.ledger_offset ADD COLUMN doubt_below bigint;
UPDATE fermata.ledger_offset SET doubt_below = next WHERE doubt_before IS NOT NULL;

-- An operator said that it was not published, and the ledger had been read up to there: every doubt about records below
-- that offset is answered. Null where nobody was asked.
ALTER TABLE fermata.checkpoint ADD COLUMN doubt_settled bigint;
