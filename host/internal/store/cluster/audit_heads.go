package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// auditTables have the last entry of each host's audit log, which the others record in theirs.
const auditTables = `
CREATE TABLE IF NOT EXISTS audit_heads (
	host    TEXT PRIMARY KEY,
	address TEXT NOT NULL,
	seq     BIGINT NOT NULL,
	hash    TEXT NOT NULL,
	at      TIMESTAMPTZ NOT NULL
);`

// AuditHead is the last entry of a host's audit log at a time of the server's clock.
type AuditHead struct {
	// Host is the name of the log's host, which it keeps over its starts.
	Host, Address string
	Seq           int64
	Hash          string
	At            time.Time
}

// maxAuditHeads bounds the table: hosts that lose their data directories leave rows.
const maxAuditHeads = 100

// keepAuditHead replaces a host's head, dropAuditHeads drops the oldest ones. selectAuditHeads bounds what others may
// have written: a row with longer texts, or without a finite time, does not have the form of a head.
const (
	keepAuditHead = `INSERT INTO audit_heads VALUES ($1, $2, $3, $4, now())
		ON CONFLICT (host) DO UPDATE SET address = excluded.address, seq = excluded.seq, hash = excluded.hash, at = excluded.at`
	dropAuditHeads   = "DELETE FROM audit_heads WHERE host IN (SELECT host FROM audit_heads ORDER BY at DESC, host OFFSET $1)"
	selectAuditHeads = `SELECT * FROM (SELECT left(host, 100), left(address, 1000), seq, left(hash, 100), CASE WHEN isfinite(at) THEN at ELSE '20000-01-01' END
		FROM audit_heads ORDER BY at DESC, host LIMIT $1) AS h ORDER BY 1`
)

// KeepAuditHead replaces the head of this host's audit log. Its address and time are not looked at. It
// needs no sign of life, so that a host that has left or is fenced can give its last one.
func (m *Member) KeepAuditHead(ctx context.Context, h AuditHead) error {
	return m.act(ctx, func(s *session) error {
		if err := s.exec(ctx, keepAuditHead, h.Host, m.opts.Address, h.Seq, h.Hash); err != nil {
			return err
		}
		return s.exec(ctx, dropAuditHeads, maxAuditHeads)
	})
}

// AuditHeads returns the heads of all hosts' audit logs.
func (m *Member) AuditHeads(ctx context.Context) ([]AuditHead, error) {
	return ReadAuditHeads(ctx, m.opts.DSN)
}

// ErrNoAuditHeads means that no hosts have shared the server yet.
var ErrNoAuditHeads = errors.New("no host has kept the head of an audit log there")

// ReadAuditHeads returns the heads of audit logs on a server, for a program that is no host.
func ReadAuditHeads(ctx context.Context, dsn string) (list []AuditHead, err error) {
	s := session{dsn: dsn, settings: moveSettings, patience: beatPatience}
	defer func() { err = errors.Join(err, s.close()) }()
	var exists bool
	err = s.query(ctx, "SELECT to_regclass('audit_heads') IS NOT NULL", nil, func(r pgx.Rows) error { return r.Scan(&exists) })
	if err == nil && !exists {
		err = ErrNoAuditHeads
	}
	if err != nil {
		return nil, err
	}
	err = s.query(ctx, selectAuditHeads, []any{maxAuditHeads}, func(r pgx.Rows) error {
		var h AuditHead
		err := r.Scan(&h.Host, &h.Address, &h.Seq, &h.Hash, &h.At)
		list = append(list, h)
		return err
	})
	return list, err
}
