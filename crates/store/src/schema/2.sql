-- What a person has allowed beforehand. `body` is the grant as JSON; who may
-- use it, and until when, is in there.
CREATE TABLE grants (
    grant_id   TEXT PRIMARY KEY,
    body       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
