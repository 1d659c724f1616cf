package abi

import "fmt"

// Op is the number of one host operation.
type Op int32

// String returns the op's name, for instance "kv.get", or its number as "op 999".
func (op Op) String() string {
	if info, ok := Lookup(op); ok {
		return info.Name
	}
	return fmt.Sprintf("op %d", int32(op))
}

// Ops by number. Numbers are never reused.
const (
	OpLastError    Op = 0
	OpLog          Op = 1
	OpClockNow     Op = 2
	OpRandom       Op = 3
	OpHistory      Op = 4
	OpMail         Op = 10
	OpAction       Op = 11
	OpEmit         Op = 12
	OpKVGet        Op = 20
	OpKVPut        Op = 21
	OpKVDelete     Op = 22
	OpKVList       Op = 23
	OpKVCas        Op = 24
	OpHTTPFetch    Op = 30
	OpLLMChat      Op = 40
	OpSecretExists Op = 50
	OpTimerSet     Op = 60
	OpTimerCancel  Op = 61
	OpMetric       Op = 70
	OpSpan         Op = 71
	OpBlobGet      Op = 80
	OpBlobPut      Op = 81
)

// Class is how an op is recorded and when its effect becomes visible.
type Class int

// The classes of op.
const (
	// ClassPure changes nothing that other agents see: it reads, or reports to
	// operators. Its answer is recorded in memory.
	ClassPure Class = iota + 1
	// ClassStaged is applied by the turn's commit, or not at all.
	ClassStaged
	// ClassImmediate is applied at once and survives a discarded turn.
	ClassImmediate
	// ClassEffect leaves the host: one durable write before it, one after.
	ClassEffect
	// ClassByTool is decided by the tool the call names (op mail).
	ClassByTool
	// ClassNone has no journal class of its own (action, emit).
	ClassNone
)

// OpInfo is one row of the op table.
type OpInfo struct {
	Op    Op
	Name  string
	Class Class
	// Built is false for a number that is reserved: a call answers
	// UNSUPPORTED.
	Built bool
}

// Ops returns the op table in number order.
func Ops() []OpInfo {
	table := opTable()
	return table[:]
}

// opTable is an array, so that a lookup allocates nothing.
func opTable() [22]OpInfo {
	return [...]OpInfo{
		{OpLastError, "last_error", ClassPure, true},
		{OpLog, "log", ClassPure, true},
		{OpClockNow, "clock.now", ClassPure, true},
		{OpRandom, "random", ClassPure, true},
		{OpHistory, "history", ClassPure, true},
		{OpMail, "mail", ClassByTool, true},
		{OpAction, "action", ClassNone, true},
		{OpEmit, "emit", ClassNone, true},
		{OpKVGet, "kv.get", ClassPure, true},
		{OpKVPut, "kv.put", ClassStaged, true},
		{OpKVDelete, "kv.delete", ClassStaged, true},
		{OpKVList, "kv.list", ClassPure, true},
		{OpKVCas, "kv.cas", ClassImmediate, true},
		{OpHTTPFetch, "http.fetch", ClassEffect, true},
		{OpLLMChat, "llm.chat", ClassEffect, true},
		{OpSecretExists, "secret.exists", ClassPure, true},
		{OpTimerSet, "timer.set", ClassStaged, true},
		{OpTimerCancel, "timer.cancel", ClassStaged, true},
		{OpMetric, "metric", ClassPure, true},
		{OpSpan, "span", ClassPure, true},
		{OpBlobGet, "blob.get", ClassPure, true},
		{OpBlobPut, "blob.put", ClassStaged, true},
	}
}

// Lookup returns the table row of an op number; ok is false for a number the
// table does not have.
func Lookup(op Op) (info OpInfo, ok bool) {
	table := opTable()
	for i := range table {
		if table[i].Op == op {
			return table[i], true
		}
	}
	return OpInfo{}, false
}

// LookupName returns the table row of an op name.
func LookupName(name string) (info OpInfo, ok bool) {
	table := opTable()
	for i := range table {
		if table[i].Name == name {
			return table[i], true
		}
	}
	return OpInfo{}, false
}
