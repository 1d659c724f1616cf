package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"skep/host/internal/gateway/state"
)

// gatewayStateWrite writes or deletes a record.
type gatewayStateWrite struct {
	closer closer
	key    state.Key
	// expect is the version that is stored. Without exact it is of no matter.
	expect  int64
	exact   bool
	value   []byte // a body; nil deletes
	expires sql.NullInt64
	now     int64
	storage int64 // the tenant's quota in bytes, 0 for none
	// version is the new one.
	version int64
}

// storedState is a record as a write finds it.
type storedState struct{ rid, records, version, size int64 }

// Put implements [state.Store].
func (g gatewayState) Put(ctx context.Context, r state.Record) (int64, error) {
	w := &gatewayStateWrite{key: r.Key, expect: r.Version, exact: true}
	if !r.Expires.IsZero() {
		w.expires = sql.NullInt64{Int64: stamp(r.Expires), Valid: true}
	}
	err := g.write(ctx, w, func() error {
		body, err := gatewayStateBody(r)
		if err == nil {
			w.value = w.closer.close(body, gatewayStateSpot(r.Key))
		}
		return err
	})
	if err != nil {
		return 0, gatewayStateFault("write", r.Key, err)
	}
	return w.version, nil
}

// Delete implements [state.Store].
func (g gatewayState) Delete(ctx context.Context, k state.Key, version int64) error {
	w := &gatewayStateWrite{key: k, expect: version, exact: version != 0}
	if err := g.write(ctx, w, func() error { return nil }); err != nil {
		return gatewayStateFault("delete", k, err)
	}
	return nil
}

// gatewayStateBody makes the body of a record that is not too large.
func gatewayStateBody(r state.Record) ([]byte, error) {
	if r.Key.Name == "" {
		return nil, errors.New("a record has a name")
	}
	if n := len(r.Key.Name); n > state.MaxName {
		return nil, fmt.Errorf("%w: its name has %d bytes, at most %d", state.ErrFull, n, state.MaxName)
	}
	if n := len(r.Value); n > state.MaxValue {
		return nil, fmt.Errorf("%w: its value has %d bytes, at most %d", state.ErrFull, n, state.MaxValue)
	}
	return wrap(r.Value)
}

// write submits a write once seal has set its body.
func (g gatewayState) write(ctx context.Context, w *gatewayStateWrite, seal func() error) error {
	c, leave, err := g.beginWrite(tenantKey(w.key.Tenant))
	if err != nil {
		return err
	}
	defer leave()
	w.closer, w.now = c, stamp(g.writer.now())
	if g.storage != nil {
		w.storage = g.storage(w.key.Tenant)
	}
	if err := seal(); err != nil {
		return err
	}
	return g.writer.submit(ctx, w)
}

func (w *gatewayStateWrite) bytes() int { return len(w.value) + len(w.key.Name) }

func (w *gatewayStateWrite) tenantName() string { return w.key.Tenant }

func (w *gatewayStateWrite) apply(ctx context.Context, t *tables) (steps int, err error) {
	if err := t.useKey(ctx, w.closer.key(), w.key.Tenant); err != nil {
		return 0, err
	}
	found, err := w.find(ctx, t)
	if err == nil && w.value != nil && found.rid == 0 {
		found, err = w.addRealm(ctx, t)
	}
	if err != nil || w.value == nil && found.size == 0 {
		return 0, err
	}
	if w.value == nil {
		t.delta.add(w.key.Tenant, -found.size, 0)
		if _, err := t.gatewayState.drop.ExecContext(ctx, found.rid, []byte(w.key.Kind), []byte(w.key.Name)); err != nil {
			return 0, err
		}
		_, err = t.countRealm(ctx, found.rid, -1)
		return 0, err
	}
	return 0, w.set(ctx, t, found)
}

// find returns what is stored, with a size of 0 for nothing, if it is what the write
// expects. An expired record counts as none; its place is taken or freed.
func (w *gatewayStateWrite) find(ctx context.Context, t *tables) (found storedState, err error) {
	g := &t.gatewayState
	err = g.findRealm.QueryRowContext(ctx, []byte(w.key.Tenant), []byte(w.key.Gateway), []byte(w.key.Realm)).Scan(&found.rid, &found.records)
	var expires sql.NullInt64
	if err == nil {
		err = g.find.QueryRowContext(ctx, found.rid, []byte(w.key.Kind), []byte(w.key.Name)).Scan(&found.version, &expires, &found.size)
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return found, err
	}
	live := found.version
	if expires.Valid && expires.Int64 <= w.now {
		live = 0
	}
	gone := w.value == nil && live == 0 // then the deletion has nothing to change
	if w.exact && !gone && live != w.expect {
		return found, refuse(state.ErrVersion)
	}
	return found, nil
}

// addRealm adds the realm of a first record, and looks again where another host has added it since. A third one may
// have removed it before the look.
func (w *gatewayStateWrite) addRealm(ctx context.Context, t *tables) (found storedState, err error) {
	for found.rid == 0 && err == nil {
		found.rid, err = t.insert(ctx, t.gatewayState.addRealm, []byte(w.key.Tenant), []byte(w.key.Gateway), []byte(w.key.Realm))
		if found.rid == 0 && err == nil {
			found, err = w.find(ctx, t)
		}
	}
	return found, err
}

func (w *gatewayStateWrite) set(ctx context.Context, t *tables, found storedState) error {
	added := int64(len(w.key.Name)+len(w.value)) - found.size
	if err := w.checkQuota(ctx, t, found, added); err != nil {
		return err
	}
	w.version = max(found.version+1, w.now)
	_, err := t.gatewayState.set.ExecContext(ctx, w.version, w.expires, w.value, found.rid, []byte(w.key.Kind), []byte(w.key.Name))
	if err != nil {
		return err
	}
	t.delta.add(w.key.Tenant, added, 0)
	if found.size != 0 {
		return nil
	}
	_, err = t.countRealm(ctx, found.rid, 1)
	return err
}

// checkQuota refuses a record too many, and what does not fit the tenant's storage.
func (w *gatewayStateWrite) checkQuota(ctx context.Context, t *tables, found storedState, added int64) error {
	if found.size == 0 && found.records >= state.MaxOfRealm {
		return refuse(fmt.Errorf("%w: realm %q has %d records at gateway %q, the most", state.ErrFull, w.key.Realm, found.records, w.key.Gateway))
	}
	if w.storage <= 0 || added <= 0 {
		return nil
	}
	var kept int64
	err := t.gatewayState.kept.QueryRowContext(ctx, []byte(w.key.Tenant)).Scan(&kept)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if kept += t.delta.bytes(w.key.Tenant); kept+added > w.storage {
		return refuse(fmt.Errorf("%w: tenant %q has %d bytes of its quota of %d stored, and %d more do not fit; raise [tenants.%s] storage",
			state.ErrFull, w.key.Tenant, kept, w.storage, added, w.key.Tenant))
	}
	return nil
}

// countRealm adds to the number of a realm's records and returns its tenant. A realm
// without records is forgotten.
func (t *tables) countRealm(ctx context.Context, rid, added int64) (tenant string, err error) {
	var name []byte
	var records int64
	err = t.gatewayState.countRealm.QueryRowContext(ctx, added, rid).Scan(&name, &records)
	if t.waiting && errors.Is(err, sql.ErrNoRows) {
		err = errUnexpected // another host has added the realm
	}
	if err != nil {
		return "", err
	}
	if records <= 0 {
		_, err = t.gatewayState.dropRealm.ExecContext(ctx, rid)
	}
	return string(name), err
}

// gatewayStatePurge deletes a slice of the records that have expired.
type gatewayStatePurge struct{ before, deleted int64 }

func (*gatewayStatePurge) bytes() int { return purgeSlice }

func (p *gatewayStatePurge) apply(ctx context.Context, t *tables) (steps int, err error) {
	p.deleted = 0
	rows, err := t.gatewayState.dropExpired.QueryContext(ctx, p.before, purgeSlice)
	type dropped struct{ rid, size int64 }
	list, err := collect(rows, err, func(rows *sql.Rows) (d dropped, err error) {
		err = rows.Scan(&d.rid, &d.size)
		return d, err
	})
	if err != nil {
		return 0, err
	}
	for _, d := range list {
		tenant, err := t.countRealm(ctx, d.rid, -1)
		if err != nil {
			return 0, err
		}
		t.delta.add(tenant, -d.size, 0)
	}
	p.deleted = int64(len(list))
	return 0, nil
}
