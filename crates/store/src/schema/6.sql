-- Where people want to be told of what waits, and what they are to be told.

CREATE TABLE webhooks (
    webhook_id TEXT PRIMARY KEY,
    owner      TEXT NOT NULL,                -- a principal; empty for the server's own
    url        TEXT NOT NULL,                -- may hold a secret as well
    secret     TEXT NOT NULL,                -- signs what is sent
    is_active  INTEGER NOT NULL,
    body       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    since      INTEGER NOT NULL,             -- entries of the audit that were looked at
    failures   INTEGER NOT NULL DEFAULT 0,   -- in a row
    retry_at   INTEGER NOT NULL DEFAULT 0,
    told_at    INTEGER,                      -- when the receiver last took something
    trouble    TEXT                          -- why it did not since
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
    webhook_id TEXT NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    event      TEXT NOT NULL,                -- names it, so that it is told once
    kind       TEXT NOT NULL,
    subject    TEXT NOT NULL,                -- an approval, a run, or nothing
    agent      TEXT NOT NULL,                -- whose notices are told together
    state      TEXT NOT NULL
               CHECK (state IN ('due', 'sent', 'dropped', 'failed')),
    message    TEXT,                         -- what it was told with, once that was tried
    created_at INTEGER NOT NULL,
    due_at     INTEGER NOT NULL,
    tried_at   INTEGER,
    body       TEXT NOT NULL,
    PRIMARY KEY (webhook_id, event)
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_due ON outbox (webhook_id, due_at) WHERE state = 'due';
CREATE INDEX outbox_subject ON outbox (subject, kind);
CREATE INDEX outbox_tried ON outbox (webhook_id, kind, agent, tried_at);
