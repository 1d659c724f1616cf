package swarm

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"skep/abi"
)

// kvName names a value within the scopes of one turn.
type kvName struct {
	scope KVScope
	name  string
}

// kvValue is a value that a turn has staged.
type kvValue struct {
	value []byte // nil deletes
	// old is the size in the quota of the committed value; -1 for none. It is read when
	// it is needed first.
	old   int64
	known bool
}

// size is the size of the staged value in the quota, -1 for none.
func (v *kvValue) size(name string) int64 {
	if v.value == nil {
		return -1
	}
	return int64(len(name) + len(v.value))
}

// ReplayedEntry is the recorded call that is being repeated, nil for a new call. It
// needs no grant: the earlier attempt had it.
func (t *Turn) ReplayedEntry() *Entry { return t.replay }

// KVScope is a scope of the turn's agent, or of the action that runs for it.
func (t *Turn) KVScope(kind KVKind) KVScope {
	switch {
	case kind == KVInstance:
		return KVScope{Kind: kind}
	case t.acting != "":
		return KVScope{Kind: kind, Agent: actionOwner + t.acting}
	}
	return KVScope{Kind: kind, Agent: t.agent.Name}
}

// KVStaged reports whether the turn has staged a value.
func (t *Turn) KVStaged(kind KVKind, name string) bool {
	_, ok := t.kv[kvName{t.KVScope(kind), name}]
	return ok
}

// KVGet returns the staged value, else the committed one. It returns [ErrNotFound] for
// neither.
func (t *Turn) KVGet(ctx context.Context, kind KVKind, name string) ([]byte, error) {
	if v, ok := t.kv[kvName{t.KVScope(kind), name}]; ok {
		if v.value == nil {
			return nil, ErrNotFound
		}
		return v.value, nil
	}
	return t.rt.store.KVGet(ctx, t.task.key, t.KVScope(kind), name)
}

// KVList returns the names that begin with prefix and are greater than after, at most
// limit, and whether there are more. Staged values count.
func (t *Turn) KVList(ctx context.Context, kind KVKind, prefix, after string, limit int) (names []string, more bool, err error) {
	var set []string
	gone := 0
	for k, v := range t.kv {
		switch {
		case k.scope != t.KVScope(kind) || !strings.HasPrefix(k.name, prefix) || k.name <= after:
		case v.value == nil:
			gone++
		default:
			set = append(set, k.name)
		}
	}
	names, err = t.rt.store.KVList(ctx, t.task.key, t.KVScope(kind), prefix, after, limit+1+gone)
	if err != nil {
		return nil, false, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return t.KVStaged(kind, name) })
	names = append(names, set...)
	slices.Sort(names)
	if len(names) > limit {
		return names[:limit], true, nil
	}
	return names, false, nil
}

// KVPut stages a value; nil deletes. A refusal is LIMIT with the quota that it
// would exceed, or INTERNAL when the store cannot be read.
func (t *Turn) KVPut(ctx context.Context, op abi.Op, kind KVKind, name string, value []byte) *abi.Error {
	key, v := kvName{t.KVScope(kind), name}, &kvValue{value: value}
	if old := t.kv[key]; old != nil {
		v.old, v.known = old.old, old.known
	}
	if value != nil && t.replay == nil {
		if fault := t.CheckStorage(op); fault != nil {
			return fault
		}
		if fault := t.checkKVQuota(ctx, op, key, v); fault != nil {
			return fault
		}
	}
	if t.kv == nil {
		t.kv = map[kvName]*kvValue{}
	}
	t.kv[key] = v
	return nil
}

// checkKVQuota checks the quotas of a scope as if the turn were committed now. Other
// turns may fill it until then; the commit checks again.
func (t *Turn) checkKVQuota(ctx context.Context, op abi.Op, key kvName, v *kvValue) *abi.Error {
	was, err := t.rt.store.KVUsage(ctx, t.task.key, key.scope)
	is := was
	count := func(name string, v *kvValue) {
		if err == nil {
			err = t.loadReplaced(ctx, key.scope.Kind, name, v)
		}
		if size := v.size(name); size >= 0 {
			is.Keys, is.Bytes = is.Keys+1, is.Bytes+size
		}
		if v.old >= 0 {
			is.Keys, is.Bytes = is.Keys-1, is.Bytes-v.old
		}
	}
	count(key.name, v)
	for k, staged := range t.kv {
		if k.scope == key.scope && k != key {
			count(k.name, staged)
		}
	}
	switch {
	case err != nil:
		return abi.Errorf(abi.CodeInternal, op, "store", "the values of scope %s cannot be read", key.scope.Kind)
	case is.Keys > max(MaxKVKeys, was.Keys):
		return abi.Errorf(abi.CodeLimit, op, "keys", "the scope %s would hold %d keys, at most %d", key.scope.Kind, is.Keys, MaxKVKeys)
	case is.Bytes > max(MaxKVBytes, was.Bytes):
		return abi.Errorf(abi.CodeLimit, op, "bytes", "the scope %s would hold %d bytes, at most %d", key.scope.Kind, is.Bytes, MaxKVBytes)
	}
	return nil
}

// loadReplaced loads the size of the committed value that a staged one replaces.
func (t *Turn) loadReplaced(ctx context.Context, kind KVKind, name string, v *kvValue) error {
	if v.known {
		return nil
	}
	value, err := t.rt.store.KVGet(ctx, t.task.key, t.KVScope(kind), name)
	switch {
	case errors.Is(err, ErrNotFound):
		v.old = -1
	case err != nil:
		return err
	default:
		v.old = int64(len(name) + len(value))
	}
	v.known = true
	return nil
}

// addKVWrites adds a turn's staged values to its commit.
func (mut *mutationBuilder) addKVWrites(t *Turn) {
	for k, v := range t.kv {
		mut.KV = append(mut.KV, KVWrite{Scope: k.scope, Name: k.name, Value: v.value, Delete: v.value == nil})
	}
	slices.SortFunc(mut.KV, func(a, b KVWrite) int {
		return cmp.Or(cmp.Compare(a.Scope.Kind, b.Scope.Kind), cmp.Compare(a.Scope.Agent, b.Scope.Agent), cmp.Compare(a.Name, b.Name))
	})
}

// failOverQuota makes the outcome a failure, because the staged values do not fit any
// more.
func (o Outcome) failOverQuota(err error) Outcome {
	o.Failure = &Failure{Cause: "kv", Message: "what the turn has stored does not fit: " + err.Error()}
	if o.Record != nil && o.Record.End != nil {
		o.Record.End.Exit = o.Failure.Cause
	}
	return o
}
