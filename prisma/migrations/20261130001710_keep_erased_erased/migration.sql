-- An id that the ledger names stays erased, also where its text is stored only afterwards: an archive may hold an answer in pieces that
-- was sealed, and erased, after it was made (decision 6).
CREATE FUNCTION keep_erased() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM erasures WHERE content_id = NEW.id) THEN
    NEW.body := NULL;
    NEW.bytes := NULL;
    NEW.chunks := 0;
    NEW.layout := NULL;
    NEW.salt := NULL;
    NEW.erased_at := now();
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER contents_keep_erased BEFORE INSERT ON contents FOR EACH ROW WHEN (NEW.erased_at IS NULL) EXECUTE FUNCTION keep_erased();
