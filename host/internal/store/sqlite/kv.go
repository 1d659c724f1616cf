package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"skep/host/internal/swarm"
)

// kvChange is a [swarm.KVWrite] as the writer takes it.
type kvChange struct {
	scope swarm.KVScope
	name  string
	value []byte // a body; nil deletes
	size  int64  // what it takes of the quota
}

// casChange is a [swarm.KVCas] as the writer takes it.
type casChange struct {
	kvChange
	expect []byte
}

func (c closer) kvChange(key swarm.TaskKey, w swarm.KVWrite) (kvChange, error) {
	w.Scope = normal(w.Scope)
	ch := kvChange{scope: w.Scope, name: w.Name}
	if err := checkKV(w); err != nil || w.Delete {
		return ch, err
	}
	body, err := wrap(w.Value)
	if err != nil {
		return ch, err
	}
	var table string
	c.place, table = kvPlace(key, w.Scope)
	ch.value = c.close(body, spot{table, w.Name, 0})
	ch.size = int64(len(w.Name) + len(w.Value))
	return ch, nil
}

func (c closer) casChange(key swarm.TaskKey, w swarm.KVCas) (*casChange, error) {
	ch, err := c.kvChange(key, swarm.KVWrite{Scope: w.Scope, Name: w.Name, Value: w.Value, Delete: w.Value == nil})
	return &casChange{ch, w.Expect}, err
}

func checkKV(w swarm.KVWrite) error {
	switch w.Scope.Kind {
	case swarm.KVTask, swarm.KVAgent, swarm.KVInstance:
	default:
		return fmt.Errorf("kv scope %q is none of task, agent and instance", w.Scope.Kind)
	}
	if n := len(w.Name); n > swarm.MaxKVName {
		return fmt.Errorf("%w: kv name of %d bytes, at most %d", swarm.ErrQuota, n, swarm.MaxKVName)
	}
	if n := len(w.Value); n > swarm.MaxKVValue {
		return fmt.Errorf("%w: kv value of %d bytes, at most %d", swarm.ErrQuota, n, swarm.MaxKVValue)
	}
	return nil
}

// normal makes scopes that are the same equal.
func normal(scope swarm.KVScope) swarm.KVScope {
	if scope.Kind == swarm.KVInstance {
		scope.Agent = ""
	}
	return scope
}

// spaceOf is the instance and the task that scopes are under.
type spaceOf struct{ iid, tid int64 }

// args finds the space of a scope.
func (o spaceOf) args(scope swarm.KVScope) []any {
	var tid int64
	if scope.Kind == swarm.KVTask {
		tid = o.tid
	}
	return []any{o.iid, string(scope.Kind), tid, []byte(scope.Agent)}
}

// space is what a scope holds, and held before.
type space struct {
	sid         int64
	usage, past swarm.KVUsage
}

func (t *tables) space(ctx context.Context, of spaceOf, scope swarm.KVScope) (*space, error) {
	args := of.args(scope)
	if _, err := t.addSpace.ExecContext(ctx, args...); err != nil {
		return nil, err
	}
	var sp space
	err := t.findSpace.QueryRowContext(ctx, args...).Scan(&sp.sid, &sp.usage.Keys, &sp.usage.Bytes)
	sp.past = sp.usage
	return &sp, err
}

// writeKV applies writes in order. Quotas hold for what they leave behind.
func (t *tables) writeKV(ctx context.Context, o opener, key swarm.TaskKey, of spaceOf, changes []kvChange) error {
	spaces := make(map[swarm.KVScope]*space, 1)
	for _, ch := range changes {
		sp, ok := spaces[ch.scope]
		if !ok {
			var err error
			if sp, err = t.space(ctx, of, ch.scope); err != nil {
				return err
			}
			spaces[ch.scope] = sp
		}
		if _, err := t.writeValue(ctx, o, key, sp, &casChange{kvChange: ch}, false); err != nil {
			return err
		}
	}
	for scope, sp := range spaces {
		if err := t.writeSpace(ctx, scope, sp); err != nil {
			return err
		}
	}
	return nil
}

// writeCas applies a compare-and-set and reports whether the value was the one
// expected.
func (t *tables) writeCas(ctx context.Context, o opener, key swarm.TaskKey, of spaceOf, ch *casChange) (bool, error) {
	sp, err := t.space(ctx, of, ch.scope)
	if err != nil {
		return false, err
	}
	ok, err := t.writeValue(ctx, o, key, sp, ch, true)
	if !ok || err != nil {
		return false, err
	}
	return true, t.writeSpace(ctx, ch.scope, sp)
}

// writeSpace writes what a scope holds, unless that is more than before and too
// much.
func (t *tables) writeSpace(ctx context.Context, scope swarm.KVScope, sp *space) error {
	if u := sp.usage; u.Keys > max(swarm.MaxKVKeys, sp.past.Keys) || u.Bytes > max(swarm.MaxKVBytes, sp.past.Bytes) {
		return refuse(fmt.Errorf("%w: kv scope %q would hold %d keys and %d bytes, at most %d and %d",
			swarm.ErrQuota, scope.Kind, u.Keys, u.Bytes, swarm.MaxKVKeys, swarm.MaxKVBytes))
	}
	_, err := t.setSpace.ExecContext(ctx, sp.usage.Keys, sp.usage.Bytes, sp.sid)
	return err
}

// writeValue writes one value, with compare only over the one expected.
func (t *tables) writeValue(ctx context.Context, o opener, key swarm.TaskKey, sp *space, ch *casChange, compare bool) (bool, error) {
	var size int64
	var old []byte
	err := t.findValue.QueryRowContext(ctx, sp.sid, []byte(ch.name)).Scan(&size, &old)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, err
	}
	if compare {
		if same, err := o.isExpected(key, ch, old); !same || err != nil {
			return false, err
		}
	}
	if old != nil {
		sp.usage.Keys--
		sp.usage.Bytes -= size
		t.delta.add(key.Tenant, -int64(len(old)+len(ch.name)), 0)
	}
	if ch.value == nil {
		_, err = t.delValue.ExecContext(ctx, sp.sid, []byte(ch.name))
		return true, err
	}
	sp.usage.Keys++
	sp.usage.Bytes += ch.size
	t.delta.add(key.Tenant, int64(len(ch.value)+len(ch.name)), 0)
	_, err = t.setValue.ExecContext(ctx, sp.sid, []byte(ch.name), ch.size, ch.value)
	return true, err
}

// isExpected compares a stored body, nil for none, with what a cas expects.
func (o opener) isExpected(key swarm.TaskKey, ch *casChange, old []byte) (bool, error) {
	if old == nil || ch.expect == nil {
		return old == nil && ch.expect == nil, nil
	}
	raw, err := o.openValue(key, ch.scope, ch.name, old)
	if err != nil {
		return false, refuse(err)
	}
	return bytes.Equal(raw, ch.expect), nil
}

func (o opener) openValue(key swarm.TaskKey, scope swarm.KVScope, name string, body []byte) ([]byte, error) {
	var table string
	o.place, table = kvPlace(key, scope)
	return o.open(body, spot{table, name, 0})
}

// KVGet implements [swarm.KV].
func (s *Store) KVGet(ctx context.Context, key swarm.TaskKey, scope swarm.KVScope, name string) ([]byte, error) {
	var body []byte
	err := s.readers.query(s.readers.value, append(scopeArgs(key, scope), []byte(name))...).first(ctx, &body)
	if errors.Is(err, sql.ErrNoRows) {
		err = swarm.ErrNotFound
	}
	if err != nil {
		return nil, wrapError("read kv", name, err)
	}
	raw, err := s.opener(key).openValue(key, scope, name, body)
	return raw, wrapError("read kv", name, err)
}

// KVList implements [swarm.KV].
func (s *Store) KVList(ctx context.Context, key swarm.TaskKey, scope swarm.KVScope, prefix, after string, limit int) ([]string, error) {
	args := append(scopeArgs(key, scope), []byte(prefix), []byte(after), beyond(prefix), max(limit, 0))
	if after == "" {
		// Every name is greater than none, the empty one too.
		args[7] = int64(0)
	}
	names, err := readRows(ctx, s.readers.query(s.readers.values, args...), func(rows *sql.Rows) (string, error) {
		var name []byte
		err := rows.Scan(&name)
		return string(name), err
	})
	return names, wrapError("list kv of task", key.Task, err)
}

// KVUsage implements [swarm.KV].
func (s *Store) KVUsage(ctx context.Context, key swarm.TaskKey, scope swarm.KVScope) (u swarm.KVUsage, err error) {
	err = s.readers.query(s.readers.space, scopeArgs(key, scope)...).first(ctx, &u.Keys, &u.Bytes)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return u, wrapError("read kv usage of task", key.Task, err)
}

func scopeArgs(key swarm.TaskKey, scope swarm.KVScope) []any {
	scope = normal(scope)
	return append(taskArgs(key), string(scope.Kind), []byte(scope.Agent))
}

// beyond returns what is greater than every name with a prefix, and not greater
// than any other name above them.
func beyond(prefix string) []byte {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return b[:i+1]
		}
	}
	return bytes.Repeat([]byte{0xff}, swarm.MaxKVName+1)
}
