package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"skep/host/internal/swarm"
)

// Definition is what a swarm was or is made of. An operator's file has definitions
// of no tenant, and are not sealed, as the file is not.
type Definition struct {
	Tenant, Swarm, Digest string
	Created               time.Time
	Body                  []byte
}

// Loaded is the definition that a tenant has in force instead of the operator's,
// as it came.
type Loaded struct {
	Tenant, Swarm string
	At            time.Time
	By            string
	Text          []byte
	// Damaged is why the text cannot be read, nil if it can.
	Damaged error
}

// LoadedVersion is the name of the version that a change of the loaded definitions raises.
const LoadedVersion = "loaded"

// definitionStmts writes the tables of definitions.
type definitionStmts struct {
	add, drop, load, loadedSize, unload *sql.Stmt
}

func (d *definitionStmts) texts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&d.add:  "INSERT INTO definitions (created, body, tenant, swarm, digest) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		&d.drop: "DELETE FROM definitions WHERE tenant = ? AND swarm = ? AND digest = ? RETURNING length(body)",
		&d.load: `INSERT INTO loaded (at, made_by, body, tenant, swarm) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (tenant, swarm) DO UPDATE SET at = excluded.at, made_by = excluded.made_by, body = excluded.body`,
		&d.loadedSize: "SELECT length(body) FROM loaded WHERE tenant = ? AND swarm = ?",
		&d.unload:     "DELETE FROM loaded WHERE tenant = ? AND swarm = ?",
	}
}

func swarmOf(tenant, name string) swarm.TaskKey {
	return swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: tenant, Swarm: name}}
}

// beginSwarmWrite begins a write to a swarm as [Store.beginEarly] does to a task: what a tenant has loaded is kept
// before the host begins.
func (s *Store) beginSwarmWrite(tenant, name string) (c closer, leave func(), err error) {
	if tenant == "" {
		s.gate.RLock()
		return closer{opener: s.opener(swarmOf("", name))}, s.gate.RUnlock, nil
	}
	return s.beginEarly(swarmOf(tenant, name))
}

// AddDefinition keeps a definition; it is durable on return. One that is there
// is left alone.
func (s *Store) AddDefinition(ctx context.Context, d Definition) error {
	c, leave, err := s.beginSwarmWrite(d.Tenant, d.Swarm)
	if err != nil {
		return err
	}
	defer leave()
	w := &definitionWrite{closer: c, tenant: d.Tenant}
	if err = w.setDefinition(d); err == nil {
		err = s.writer.submit(ctx, w)
	}
	if err != nil {
		return fmt.Errorf("keep definition %s: %w", d.Digest, addAdvice(err))
	}
	return nil
}

// LoadDefinition puts a definition in force for a tenant: l as it came, and d, which is what
// its tasks will name. Both are durable on return, or neither is there.
func (s *Store) LoadDefinition(ctx context.Context, l Loaded, d Definition) error {
	c, leave, err := s.beginWrite(swarmOf(l.Tenant, l.Swarm))
	if err != nil {
		return err
	}
	defer leave()
	w := &definitionWrite{closer: c, tenant: l.Tenant}
	err = w.setDefinition(d)
	if err == nil {
		err = w.setLoaded(l)
	}
	if err == nil {
		err = s.writer.submit(ctx, w)
	}
	if err != nil {
		return fmt.Errorf("load definition %s of tenant %q: %w", d.Digest, l.Tenant, addAdvice(err))
	}
	return nil
}

// UnloadDefinition gives a tenant the operator's definition again.
func (s *Store) UnloadDefinition(ctx context.Context, tenant, name string) error {
	if err := s.writer.submit(ctx, &definitionUnload{tenant, name}); err != nil {
		return fmt.Errorf("unload the definition of tenant %q: %w", tenant, addAdvice(err))
	}
	return nil
}

// DropDefinition forgets a definition, which need not be there.
func (s *Store) DropDefinition(ctx context.Context, tenant, name, digest string) error {
	if err := s.writer.submit(ctx, &definitionDrop{tenant, name, digest}); err != nil {
		return fmt.Errorf("drop definition %s: %w", digest, addAdvice(err))
	}
	return nil
}

// Definition returns the definition with a digest, or [swarm.ErrNotFound].
func (s *Store) Definition(ctx context.Context, tenant, name, digest string) (Definition, error) {
	d := Definition{Tenant: tenant, Swarm: name, Digest: digest}
	var created int64
	var body []byte
	err := s.readers.queryText("SELECT created, body FROM definitions WHERE tenant = ? AND swarm = ? AND digest = ?",
		[]byte(tenant), []byte(name), []byte(digest)).first(ctx, &created, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return d, swarm.ErrNotFound
	}
	if err == nil {
		d.Created = unstamp(created)
		d.Body, err = s.opener(swarmOf(tenant, name)).open(body, spot{inDefinitions, digest, 0})
	}
	if err != nil {
		return d, fmt.Errorf("read definition %s: %w", digest, addAdvice(err))
	}
	return d, nil
}

// Definitions lists the definitions that are kept, without their bodies.
func (s *Store) Definitions(ctx context.Context) ([]Definition, error) {
	list, err := readRows(ctx, s.readers.queryText("SELECT tenant, swarm, digest, created FROM definitions"), func(rows *sql.Rows) (d Definition, err error) {
		var tenant, name, digest []byte
		var created int64
		err = rows.Scan(&tenant, &name, &digest, &created)
		d.Tenant, d.Swarm, d.Digest, d.Created = string(tenant), string(name), string(digest), unstamp(created)
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("list definitions: %w", addAdvice(err))
	}
	return list, nil
}

// NamedDefinitions returns the digests that tasks name which run or are paused.
func (s *Store) NamedDefinitions(ctx context.Context) (map[string]bool, error) {
	q := s.readers.queryText("SELECT DISTINCT definition FROM tasks INDEXED BY tasks_defined WHERE definition IS NOT NULL AND ended IS NULL")
	list, err := readRows(ctx, q, func(rows *sql.Rows) (digest []byte, err error) {
		err = rows.Scan(&digest)
		return digest, err
	})
	if err != nil {
		return nil, fmt.Errorf("list the definitions of tasks: %w", addAdvice(err))
	}
	named := make(map[string]bool, len(list))
	for _, digest := range list {
		named[string(digest)] = true
	}
	return named, nil
}

// listLoaded leaves out a tenant whose erasure was cut short: it has nothing in force
// any more, and its key is destroyed.
const listLoaded = `SELECT tenant, swarm, at, made_by, body FROM loaded
	WHERE tenant NOT IN (SELECT tenant FROM chores WHERE kind = 'erase') ORDER BY tenant, swarm`

// Loaded lists what tenants have in force instead of the operator's definition. One that
// cannot be read hides no other.
func (s *Store) Loaded(ctx context.Context) ([]Loaded, error) {
	list, err := readRows(ctx, s.readers.queryText(listLoaded), func(rows *sql.Rows) (l Loaded, err error) {
		var tenant, name, by []byte
		var at int64
		err = rows.Scan(&tenant, &name, &at, &by, &l.Text)
		l.Tenant, l.Swarm, l.By, l.At = string(tenant), string(name), string(by), unstamp(at)
		return l, err
	})
	if err != nil {
		return nil, fmt.Errorf("list loaded definitions: %w", addAdvice(err))
	}
	listed := list[:0]
	for _, l := range list {
		l.Text, err = s.opener(swarmOf(l.Tenant, l.Swarm)).open(l.Text, spot{inLoaded, "", 0})
		switch {
		case errors.Is(err, swarm.ErrErasing): // it has begun since the list was read
		case err != nil && !IsDamaged(err):
			return nil, fmt.Errorf("read the loaded definition of tenant %q: %w", l.Tenant, err)
		default:
			l.Damaged = err
			listed = append(listed, l)
		}
	}
	return listed, nil
}
