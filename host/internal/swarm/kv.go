package swarm

// KVKind says who shares the values of a [KVScope].
type KVKind string

// The kinds of scope, from the narrowest to the widest.
const (
	// KVTask is of one agent in one task.
	KVTask KVKind = "task"
	// KVAgent is of one agent in all tasks of its instance.
	KVAgent KVKind = "agent"
	// KVInstance is of all agents and tasks of an instance.
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

// KVWrite sets or deletes a value when its [Step] is applied. Writes apply in
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

// KVUsage is what a scope holds of its quotas.
type KVUsage struct {
	Keys  int64
	Bytes int64
}
