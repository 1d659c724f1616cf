package abi

// KVGetRequest is the request of op kv.get, and of kv.delete. An empty scope is
// the agent's, here and in the others.
type KVGetRequest struct {
	Key   string `json:"key"`
	Scope string `json:"scope,omitempty"`
}

// KVGetResponse is the answer of op kv.get.
type KVGetResponse struct {
	Value string `json:"value"`
}

// KVPutRequest is the request of op kv.put.
type KVPutRequest struct {
	Key   string  `json:"key"`
	Value *string `json:"value"`
	Scope string  `json:"scope,omitempty"`
}

// KVListRequest is the request of op kv.list.
type KVListRequest struct {
	Prefix string `json:"prefix,omitempty"`
	After  string `json:"after,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Scope  string `json:"scope,omitempty"`
}

// KVListResponse is the answer of op kv.list.
type KVListResponse struct {
	Keys []string `json:"keys"`
	Next string   `json:"next,omitempty"`
}

// KVCasRequest is the request of op kv.cas.
type KVCasRequest struct {
	Key    string  `json:"key"`
	Expect *string `json:"expect"`
	Value  *string `json:"value"`
	Scope  string  `json:"scope,omitempty"`
}

// KVCasResponse is the answer of op kv.cas.
type KVCasResponse struct {
	OK bool `json:"ok"`
}

// Span is a length of time as time.Duration writes it.
type Span string

// TimerRequest is the request of op timer.set.
type TimerRequest struct {
	After Span   `json:"after"`
	Body  string `json:"body"`
}

// TimerResponse is the answer of op timer.set.
type TimerResponse struct {
	ID string `json:"id"`
}

// TimerCancelRequest is the request of op timer.cancel.
type TimerCancelRequest struct {
	ID string `json:"id"`
}
