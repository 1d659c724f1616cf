package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"skep/host/internal/quarantine"
)

var _ quarantine.Store = (*Store)(nil)

// quarantineStmts writes the table of agents in quarantine. What is in it is not sealed: it is
// names, a digest and a date.
type quarantineStmts struct {
	add, drop *sql.Stmt
}

func (q *quarantineStmts) texts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&q.add:  "INSERT INTO quarantine (tenant, swarm, agent, module, since, why) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		&q.drop: "DELETE FROM quarantine WHERE tenant = ? AND swarm = ? AND agent = ?",
	}
}

// listConfined leaves out a tenant whose erasure was cut short, as listTokens does.
const listConfined = `SELECT tenant, swarm, agent, module, since, why FROM quarantine
	WHERE tenant NOT IN (SELECT tenant FROM chores WHERE kind = 'erase') ORDER BY since, tenant, swarm, agent`

// QuarantineVersion is the name of the version that a change of the quarantine raises.
const QuarantineVersion = "quarantine"

// Confined implements [quarantine.Store].
func (s *Store) Confined(ctx context.Context) ([]quarantine.Confined, error) {
	list, err := readRows(ctx, s.readers.queryText(listConfined), func(rows *sql.Rows) (c quarantine.Confined, err error) {
		var tenant, name, agent, module, why []byte
		var since int64
		err = rows.Scan(&tenant, &name, &agent, &module, &since, &why)
		c.Agent = quarantine.Agent{Tenant: string(tenant), Swarm: string(name), Name: string(agent)}
		c.Module, c.Since, c.Why = string(module), unstamp(since), string(why)
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("list agents in quarantine: %w", addAdvice(err))
	}
	return list, nil
}

// exportConfined writes a tenant's agents in quarantine.
func (s *Store) exportConfined(ctx context.Context, tenant string, enc *json.Encoder) error {
	all, err := s.Confined(ctx)
	for _, c := range all {
		if err != nil {
			break
		}
		if c.Tenant != tenant {
			continue
		}
		var raw []byte
		raw, err = json.Marshal(struct {
			Module string    `json:"module,omitempty"`
			Since  time.Time `json:"since"`
			Why    string    `json:"why"`
		}{c.Module, c.Since, c.Why})
		if err == nil {
			err = enc.Encode(line{Kind: "quarantine", Swarm: c.Swarm, Agent: c.Name, Data: raw})
		}
	}
	return err
}

// ConfineAgent implements [quarantine.Store].
func (s *Store) ConfineAgent(ctx context.Context, c quarantine.Confined) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.erasing[c.Tenant] {
		return fmt.Errorf("%w: %q", quarantine.ErrErasing, c.Tenant)
	}
	err := s.writer.submit(ctx, quarantineWrite(func(ctx context.Context, q *quarantineStmts) error {
		_, err := q.add.ExecContext(ctx, append(confinedArgs(c.Agent), []byte(c.Module), stamp(c.Since), []byte(c.Why))...)
		return err
	}))
	if err != nil {
		return fmt.Errorf("keep an agent in quarantine: %w", addAdvice(err))
	}
	return nil
}

// ReleaseAgent implements [quarantine.Store].
func (s *Store) ReleaseAgent(ctx context.Context, a quarantine.Agent) (ok bool, err error) {
	err = s.writer.submit(ctx, quarantineWrite(func(ctx context.Context, q *quarantineStmts) error {
		r, err := q.drop.ExecContext(ctx, confinedArgs(a)...)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		ok = n > 0
		return err
	}))
	if err != nil {
		return false, fmt.Errorf("release an agent from quarantine: %w", addAdvice(err))
	}
	return ok, nil
}

func confinedArgs(a quarantine.Agent) []any {
	return []any{[]byte(a.Tenant), []byte(a.Swarm), []byte(a.Name)}
}

// Confined is [Store.Confined].
func (r *Reader) Confined(ctx context.Context) ([]quarantine.Confined, error) {
	return r.store.Confined(ctx)
}

// quarantineWrite is a write to the table of agents in quarantine.
type quarantineWrite func(ctx context.Context, q *quarantineStmts) error

func (quarantineWrite) bytes() int { return purgeSlice }

func (w quarantineWrite) apply(ctx context.Context, t *tables) (steps int, err error) {
	if err := w(ctx, &t.confining); err != nil {
		return 0, err
	}
	return 0, t.shared.raiseVersion(ctx, QuarantineVersion)
}
