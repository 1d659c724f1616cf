package abi

// KVGetRequest is the request of op kv.get.
type KVGetRequest struct {
	// Key is 1 to 512 bytes.
	Key string `json:"key"`
	// Scope is "task", "agent" or "instance", here and in the other ops; empty
	// is "agent".
	Scope string `json:"scope,omitempty"`
}

// KVGetResponse is the answer of op kv.get.
type KVGetResponse struct {
	Value string `json:"value"`
}

// KVPutRequest is the request of op kv.put; its answer is empty.
type KVPutRequest struct {
	Key string `json:"key"`
	// Value is at most 64 KiB. It must be there.
	Value *string `json:"value"`
	Scope string  `json:"scope,omitempty"`
}

// KVDeleteRequest is the request of op kv.delete; its answer is empty.
type KVDeleteRequest struct {
	Key   string `json:"key"`
	Scope string `json:"scope,omitempty"`
}

// KVListRequest is the request of op kv.list: keys that begin with Prefix and
// are greater than After.
type KVListRequest struct {
	Prefix string `json:"prefix,omitempty"`
	After  string `json:"after,omitempty"`
	// Limit is at most 1,000; 0 means 100.
	Limit int    `json:"limit,omitempty"`
	Scope string `json:"scope,omitempty"`
}

// KVListResponse is the answer of op kv.list: keys in the order of their bytes.
// Next is the After of the next page, empty at the end.
type KVListResponse struct {
	Keys []string `json:"keys"`
	Next string   `json:"next,omitempty"`
}

// KVCasRequest is the request of op kv.cas.
type KVCasRequest struct {
	Key string `json:"key"`
	// Expect is the value wanted; null wants none.
	Expect *string `json:"expect"`
	// Value is the new one; null deletes.
	Value *string `json:"value"`
	Scope string  `json:"scope,omitempty"`
}

// KVCasResponse is the answer of op kv.cas. OK: the value was the
// expected one and is replaced.
type KVCasResponse struct {
	OK bool `json:"ok"`
}
