package swarm

// KVKind is the width of a [KVScope].
type KVKind string

// The kinds of scope, from the narrowest to the widest.
const (
	// KVTask is shared by one agent's turns in one task.
	KVTask KVKind = "task"
	// KVAgent is shared by one agent's turns in all tasks of its instance.
	KVAgent KVKind = "agent"
	// KVInstance is shared by all agents and tasks of an instance.
	KVInstance KVKind = "instance"
)

// KVScope names a set of values under the task of a turn.
type KVScope struct {
	Kind KVKind
	// Agent is ignored by the scope of an instance.
	Agent string
}

// Quotas of one scope.
const (
	MaxKVKeys  = 1000
	MaxKVName  = 512      // bytes of a name
	MaxKVValue = 64 << 10 // bytes of a value
	// MaxKVBytes bounds all names and values together.
	MaxKVBytes = 4 << 20
)

// KVWrite sets or deletes a value when its [Mutation] is applied. Writes apply in
// order; the last to a name wins.
type KVWrite struct {
	Scope  KVScope
	Name   string
	Value  []byte
	Delete bool
}

// KVCas replaces a value if it is still the one expected.
type KVCas struct {
	Scope KVScope
	Name  string
	// Expect is the value wanted; nil wants none. An empty value is not nil.
	Expect []byte
	// Value is the new one; nil deletes.
	Value []byte
	// Yes or No joins the journal as its last entry, as it was decided. Both
	// have the same N.
	Yes, No Entry
}

// KVUsage is the part of its quotas that a scope uses.
type KVUsage struct {
	Keys  int64
	Bytes int64
}
