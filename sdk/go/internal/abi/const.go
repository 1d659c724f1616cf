// Package abi owns the SDK's copy of the numbers, names and JSON shapes of ABI
// version 1. A test of the host's module compares it with the host's own. It
// must not know how a call reaches the host.
package abi

// Version is the ABI version the SDK speaks.
const Version = 1

// Op is the number of one host operation.
type Op int32

// Ops by number.
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

// OpName is one row of the op table.
type OpName struct {
	Op   Op
	Name string
}

// Ops returns the op table in number order.
func Ops() []OpName {
	return []OpName{
		{OpLastError, "last_error"},
		{OpLog, "log"},
		{OpClockNow, "clock.now"},
		{OpRandom, "random"},
		{OpHistory, "history"},
		{OpMail, "mail"},
		{OpAction, "action"},
		{OpEmit, "emit"},
		{OpKVGet, "kv.get"},
		{OpKVPut, "kv.put"},
		{OpKVDelete, "kv.delete"},
		{OpKVList, "kv.list"},
		{OpKVCas, "kv.cas"},
		{OpHTTPFetch, "http.fetch"},
		{OpLLMChat, "llm.chat"},
		{OpSecretExists, "secret.exists"},
		{OpTimerSet, "timer.set"},
		{OpTimerCancel, "timer.cancel"},
		{OpMetric, "metric"},
		{OpSpan, "span"},
		{OpBlobGet, "blob.get"},
		{OpBlobPut, "blob.put"},
	}
}

// Code is one of the closed set of error codes.
type Code int32

// The closed set. 0 is no error.
const (
	CodeOK          Code = 0
	CodeInvalid     Code = 1
	CodeDenied      Code = 2
	CodeNotFound    Code = 3
	CodeUnavailable Code = 4
	CodeDeadline    Code = 5
	CodeCancelled   Code = 6
	CodeLimit       Code = 7
	CodeConflict    Code = 8
	CodeUpstream    Code = 9
	CodeUnsupported Code = 10
	CodeInternal    Code = 11
)

// CodeNames holds the name of each code at its number.
var CodeNames = [...]string{
	"OK", "INVALID", "DENIED", "NOT_FOUND", "UNAVAILABLE", "DEADLINE", "CANCELLED",
	"LIMIT", "CONFLICT", "UPSTREAM", "UNSUPPORTED", "INTERNAL",
}

// Status is what a guest's exported functions return.
type Status int32

// The statuses.
const (
	StatusOK             Status = 0
	StatusError          Status = 1
	StatusNotImplemented Status = 2
)

// Kinds of history entry.
const (
	KindIn     = "in"
	KindCall   = "call"
	KindResult = "result"
	KindNote   = "note"
)
