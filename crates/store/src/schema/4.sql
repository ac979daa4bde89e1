-- What runs changed on a copy. The changes themselves are files beside the
-- database, named by run; `body` is what is told of them.
CREATE TABLE changes (
    command_id TEXT PRIMARY KEY REFERENCES terminal_commands,
    session_id TEXT,
    state      TEXT NOT NULL
               CHECK (state IN ('held', 'applied', 'discarded', 'undone')),
    hash       TEXT NOT NULL,                -- of what would be, or was applied
    below      TEXT NOT NULL,                -- runs whose held changes it saw, as JSON
    bytes      INTEGER NOT NULL,             -- of before-images on disk
    updated_at INTEGER NOT NULL,
    body       TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX changes_held ON changes (session_id, command_id) WHERE state = 'held';
CREATE INDEX changes_bytes ON changes (updated_at, command_id) WHERE bytes > 0;
