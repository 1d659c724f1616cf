package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// definitionWrite keeps a definition, and puts it in force if it is loaded.
type definitionWrite struct {
	closer closer
	tenant string
	add    []any
	body   []byte
	loaded *Loaded
	load   []any
	text   []byte
}

func (w *definitionWrite) setDefinition(d Definition) error {
	body, err := wrap(d.Body)
	if err != nil {
		return err
	}
	w.body = w.closer.close(compress(body), spot{inDefinitions, d.Digest, 0})
	w.add = []any{stamp(d.Created), w.body, []byte(d.Tenant), []byte(d.Swarm), []byte(d.Digest)}
	return nil
}

func (w *definitionWrite) setLoaded(l Loaded) error {
	text, err := wrap(l.Text)
	if err != nil {
		return err
	}
	w.loaded = &l
	w.text = w.closer.close(compress(text), spot{inLoaded, "", 0})
	w.load = []any{stamp(l.At), []byte(l.By), w.text, []byte(l.Tenant), []byte(l.Swarm)}
	return nil
}

func (w *definitionWrite) bytes() int { return len(w.body) + len(w.text) }

func (w *definitionWrite) apply(ctx context.Context, t *tables) (steps int, err error) {
	if err := t.useKey(ctx, w.closer.key(), w.tenant); err != nil {
		return 0, err
	}
	r, err := t.defined.add.ExecContext(ctx, w.add...)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	if err != nil {
		return 0, err
	}
	t.addDefinitionBytes(w.tenant, n*int64(len(w.body)))
	if w.loaded == nil {
		return 0, nil
	}
	before, err := t.loadedSize(ctx, w.loaded.Tenant, w.loaded.Swarm)
	if err != nil {
		return 0, err
	}
	t.addDefinitionBytes(w.tenant, int64(len(w.text))-before)
	if _, err = t.defined.load.ExecContext(ctx, w.load...); err != nil {
		return 0, err
	}
	return 0, t.shared.raiseVersion(ctx, LoadedVersion)
}

// addDefinitionBytes counts what is kept of definitions. What is of no tenant is not counted.
func (t *tables) addDefinitionBytes(tenant string, bytes int64) {
	if tenant != "" {
		t.delta.add(tenant, bytes, 0)
	}
}

func (t *tables) loadedSize(ctx context.Context, tenant, name string) (n int64, err error) {
	err = t.defined.loadedSize.QueryRowContext(ctx, []byte(tenant), []byte(name)).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return n, err
}

// definitionUnload takes a definition out of force.
type definitionUnload struct{ tenant, name string }

func (w *definitionUnload) bytes() int { return len(w.tenant) }

func (w *definitionUnload) apply(ctx context.Context, t *tables) (steps int, err error) {
	size, err := t.loadedSize(ctx, w.tenant, w.name)
	if err != nil {
		return 0, err
	}
	t.addDefinitionBytes(w.tenant, -size)
	if _, err = t.defined.unload.ExecContext(ctx, []byte(w.tenant), []byte(w.name)); err != nil {
		return 0, err
	}
	return 0, t.shared.raiseVersion(ctx, LoadedVersion)
}

// definitionDrop forgets a definition.
type definitionDrop struct{ tenant, name, digest string }

func (w *definitionDrop) bytes() int { return len(w.digest) }

func (w *definitionDrop) apply(ctx context.Context, t *tables) (steps int, err error) {
	var size int64
	err = t.defined.drop.QueryRowContext(ctx, []byte(w.tenant), []byte(w.name), []byte(w.digest)).Scan(&size)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	t.addDefinitionBytes(w.tenant, -size)
	return 0, err
}
