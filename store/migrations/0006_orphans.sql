-- Decisions that were refused because no suspend event came: where no checkpoint is known they go as rows do. The index holds
-- nothing else. Safe while workers of version 5 run.
CREATE INDEX decision_no_suspend ON fermata.decision (decision_id) WHERE left(reason, 10) = 'no_suspend';
