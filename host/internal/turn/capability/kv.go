package capability

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// Limits of a page of kv.list.
const (
	defaultKeys = 100
	maxKeys     = 1000
)

// kvKinds are the scopes of values, each within the next.
func kvKinds() []swarm.KVKind {
	return []swarm.KVKind{swarm.KVTask, swarm.KVAgent, swarm.KVInstance}
}

// kvScope parses a scope and checks its grant.
func (o *ops) kvScope(op abi.Op, name string) (swarm.KVKind, *abi.Error) {
	kind := swarm.KVKind(cmp.Or(name, string(swarm.KVAgent)))
	asked, granted := slices.Index(kvKinds(), kind), slices.Index(kvKinds(), o.allow.KV)
	if asked < 0 {
		return "", abi.Errorf(abi.CodeInvalid, op, "scope", "the scope must be task, agent or instance, not %.40q", name)
	}
	if asked > granted && o.turn.ReplayedEntry() == nil {
		return "", abi.Errorf(abi.CodeDenied, op, "grant", "the scope %s is not granted to %s; it takes allow = { kv = %q } in %s",
			kind, o.callerName(), kind, o.tableName())
	}
	return kind, nil
}

// kvPlace checks a key and its scope.
func (o *ops) kvPlace(op abi.Op, scope, key string) (swarm.KVKind, *abi.Error) {
	switch {
	case key == "":
		return "", abi.Errorf(abi.CodeInvalid, op, "key", "the key must not be empty")
	case len(key) > swarm.MaxKVName:
		return "", abi.Errorf(abi.CodeLimit, op, "key", "a key of %d bytes, at most %d", len(key), swarm.MaxKVName)
	}
	return o.kvScope(op, scope)
}

func checkValue(op abi.Op, value string) *abi.Error {
	if len(value) > swarm.MaxKVValue {
		return abi.Errorf(abi.CodeLimit, op, "value", "a value of %d bytes, at most %d", len(value), swarm.MaxKVValue)
	}
	return nil
}

// storeError is the error of a failed read, or the cancellation of the turn.
func storeError(ctx context.Context, op abi.Op) *abi.Error {
	if fault := turn.CancelledError(ctx, op.String()); fault != nil {
		return fault
	}
	return abi.Errorf(abi.CodeInternal, op, "store", "the store cannot be read")
}

func (o *ops) kvGet(ctx context.Context, req []byte) ([]byte, *abi.Error) {
	var ask abi.KVGetRequest
	if fault := decode(abi.OpKVGet, req, &ask); fault != nil {
		return nil, fault
	}
	kind, fault := o.kvPlace(abi.OpKVGet, ask.Scope, ask.Key)
	if fault != nil {
		return nil, fault
	}
	value, err := o.turn.KVGet(ctx, kind, ask.Key)
	switch {
	case errors.Is(err, swarm.ErrNotFound):
		return nil, abi.Errorf(abi.CodeNotFound, abi.OpKVGet, "key", "there is no key %.64q in the scope %s", ask.Key, kind)
	case err != nil:
		return nil, storeError(ctx, abi.OpKVGet)
	}
	return encode(abi.OpKVGet, abi.KVGetResponse{Value: string(value)})
}

func (o *ops) kvList(ctx context.Context, req []byte) ([]byte, *abi.Error) {
	var ask abi.KVListRequest
	if fault := decode(abi.OpKVList, req, &ask); fault != nil {
		return nil, fault
	}
	if ask.Limit < 0 {
		return nil, abi.Errorf(abi.CodeInvalid, abi.OpKVList, "range", "limit must not be negative")
	}
	kind, fault := o.kvScope(abi.OpKVList, ask.Scope)
	if fault != nil {
		return nil, fault
	}
	limit := min(cmp.Or(ask.Limit, defaultKeys), maxKeys)
	keys, more, err := o.turn.KVList(ctx, kind, ask.Prefix, ask.After, limit)
	if err != nil {
		return nil, storeError(ctx, abi.OpKVList)
	}
	rsp := abi.KVListResponse{Keys: append([]string{}, keys...)}
	if more {
		rsp.Next = keys[len(keys)-1]
	}
	return encode(abi.OpKVList, rsp)
}

func (o *ops) kvPut(ctx context.Context, req []byte) ([]byte, *abi.Error) {
	var ask abi.KVPutRequest
	if fault := decode(abi.OpKVPut, req, &ask); fault != nil {
		return nil, fault
	}
	if ask.Value == nil {
		return nil, abi.Errorf(abi.CodeInvalid, abi.OpKVPut, "value", "value is missing; it must be a text")
	}
	kind, fault := o.kvPlace(abi.OpKVPut, ask.Scope, ask.Key)
	if fault == nil {
		fault = checkValue(abi.OpKVPut, *ask.Value)
	}
	if fault != nil {
		return nil, fault
	}
	return o.stageKV(ctx, abi.OpKVPut, kind, ask.Key, []byte(*ask.Value))
}

func (o *ops) kvDelete(ctx context.Context, req []byte) ([]byte, *abi.Error) {
	var ask abi.KVDeleteRequest
	if fault := decode(abi.OpKVDelete, req, &ask); fault != nil {
		return nil, fault
	}
	kind, fault := o.kvPlace(abi.OpKVDelete, ask.Scope, ask.Key)
	if fault != nil {
		return nil, fault
	}
	return o.stageKV(ctx, abi.OpKVDelete, kind, ask.Key, nil)
}

func (o *ops) stageKV(ctx context.Context, op abi.Op, kind swarm.KVKind, key string, value []byte) ([]byte, *abi.Error) {
	fault := o.turn.KVPut(ctx, op, kind, key, value)
	switch {
	case fault != nil && fault.Code == abi.CodeInternal:
		return nil, storeError(ctx, op)
	case fault != nil:
		return nil, fault
	}
	return []byte("{}"), nil
}

// kvCas prepares a compare-and-set. It does not see staged values, and the commit would
// overwrite its result, so a staged key is refused.
func (o *ops) kvCas(_ context.Context, req []byte) (casChange, *abi.Error) {
	var ask abi.KVCasRequest
	if fault := decode(abi.OpKVCas, req, &ask); fault != nil {
		return casChange{}, fault
	}
	kind, fault := o.kvPlace(abi.OpKVCas, ask.Scope, ask.Key)
	for _, value := range []*string{ask.Expect, ask.Value} {
		if fault == nil && value != nil {
			fault = checkValue(abi.OpKVCas, *value)
		}
	}
	if fault == nil && o.turn.KVStaged(kind, ask.Key) {
		fault = abi.Errorf(abi.CodeConflict, abi.OpKVCas, "staged", "the turn has already put or deleted the key %.64q", ask.Key)
	}
	if fault == nil && ask.Value != nil {
		fault = o.turn.CheckStorage(abi.OpKVCas)
	}
	if fault != nil {
		return casChange{}, fault
	}
	yes, _ := encode(abi.OpKVCas, abi.KVCasResponse{OK: true})
	no, _ := encode(abi.OpKVCas, abi.KVCasResponse{})
	return casChange{
		cas:    swarm.KVCas{Scope: o.turn.KVScope(kind), Name: ask.Key, Expect: raw(ask.Expect), Value: raw(ask.Value)},
		onSwap: yes, onMismatch: no,
	}, nil
}

// raw returns the bytes of a string, nil for nil.
func raw(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}
