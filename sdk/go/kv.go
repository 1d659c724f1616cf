package skep

import (
	"iter"

	"skep/sdk/go/internal/abi"
)

// Scope is who shares the values of a [KV]. The operator grants the widest
// one, as in allow = { kv = "agent" }; a wider one is [Denied].
type Scope string

// The scopes, from the narrowest to the widest.
const (
	// ScopeTask is of this agent in this task.
	ScopeTask Scope = "task"
	// ScopeAgent is of this agent in all tasks of its instance.
	ScopeAgent Scope = "agent"
	// ScopeInstance is of all agents and tasks of the instance.
	ScopeInstance Scope = "instance"
)

// KV are texts that last beyond the turn, under keys of 1 to 512 bytes, each at
// most 64 KiB. A scope holds 1,000 keys and 4 MiB; what is more is [Limit]. Like
// the turn it serves one goroutine at a time.
type KV struct {
	turn  *Turn
	scope string
}

// KV returns the values of a scope. It calls nothing.
func (t *Turn) KV(scope Scope) KV { return KV{t, string(scope)} }

// Get returns a value: what this turn has put, else what is committed. The error
// is [NotFound] when there is none.
func (kv KV) Get(key string) (string, error) {
	var rsp abi.KVGetResponse
	err := kv.turn.Call(OpKVGet, abi.KVGetRequest{Key: key, Scope: kv.scope}, &rsp)
	return rsp.Value, err
}

// Put sets a value. The turn sees it at once, others when the turn has ended
// well; the last turn to end wins.
func (kv KV) Put(key, value string) error {
	return kv.turn.Call(OpKVPut, abi.KVPutRequest{Key: key, Value: &value, Scope: kv.scope}, nil)
}

// Delete removes a value, as Put sets one. It is no error if there is none.
func (kv KV) Delete(key string) error {
	return kv.turn.Call(OpKVDelete, abi.KVGetRequest{Key: key, Scope: kv.scope}, nil)
}

// List returns keys that begin with prefix and are greater than after, in the
// order of their bytes, at most limit of them (0 is 100, at most 1,000). Next is
// the after of the next page, empty at the end.
func (kv KV) List(prefix, after string, limit int) (keys []string, next string, err error) {
	var rsp abi.KVListResponse
	err = kv.turn.Call(OpKVList, abi.KVListRequest{Prefix: prefix, After: after, Limit: limit, Scope: kv.scope}, &rsp)
	return rsp.Keys, rsp.Next, err
}

// Keys gives all keys that begin with prefix, page by page. An error is the last
// pair, with an empty key.
func (kv KV) Keys(prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for after := ""; ; {
			keys, next, err := kv.List(prefix, after, 1000)
			for _, key := range keys {
				if !yield(key, nil) {
					return
				}
			}
			if err != nil {
				yield("", err)
			}
			if after = next; err != nil || next == "" {
				return
			}
		}
	}
}

// Cas replaces a value at once if it is the one expected, and reports whether it
// was. A nil expect wants no value there, a nil value deletes. It stays even if
// the turn fails, and it does not see what the turn has put: of such a key it is
// [Conflict].
func (kv KV) Cas(key string, expect, value *string) (bool, error) {
	var rsp abi.KVCasResponse
	err := kv.turn.Call(OpKVCas, abi.KVCasRequest{Key: key, Expect: expect, Value: value, Scope: kv.scope}, &rsp)
	return rsp.OK, err
}
