-- A partition that intake has stopped because most of its records became dead letters. A worker of an earlier version
-- that still runs ends when it meets the new word: start the new ones first where partitions may fail so.
ALTER TABLE fermata.kafka_offset
	DROP CONSTRAINT kafka_offset_waits_check,
	ADD CONSTRAINT kafka_offset_waits_check CHECK (waits IN ('alarm', 'registry', 'breaker')),
	-- Records below that offset are let through as dead letters, an operator says.
	ADD COLUMN let_through bigint;
