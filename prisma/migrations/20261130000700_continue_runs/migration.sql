-- A run that goes on with one of the same question that ended with a checkpoint (K5, K6). Whose it is follows from the question.
ALTER TABLE runs ADD COLUMN continues_run_id uuid CHECK (continues_run_id IS NULL OR (kind = 'answer' AND continues_run_id <> id));
CREATE UNIQUE INDEX runs_question_id_id_key ON runs (question_id, id);
ALTER TABLE runs ADD FOREIGN KEY (question_id, continues_run_id) REFERENCES runs (question_id, id);
