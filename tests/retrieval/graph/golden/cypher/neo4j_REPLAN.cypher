CALL db.prepareForReplanning($seconds)
