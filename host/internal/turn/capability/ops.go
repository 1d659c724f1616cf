package capability

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
	"unicode/utf8"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// ops answers the op calls of one turn, on the turn's goroutine.
type ops struct {
	turn    *swarm.Turn
	table   table
	clock   turn.Clock
	now     func() time.Time // of the host
	allow   Allow
	fetcher Fetcher
	costs   *requestCosts
	// waitingTurns bounds what waits with its sandbox; nil bounds nothing.
	waitingTurns *WaitingTurns
	// models are the operator's models.
	models map[string]Model
	// actions are the actions with code that may be called. action is the action that
	// these ops belong to, nil for the agent itself.
	actions     map[string]*Action
	action      *Action
	argsChecks  map[string]ArgsCheck
	modules     Modules
	cpu         turn.CPU
	seed        [32]byte
	ids         *rand.ChaCha8 // for op random in an action
	actionUsage *actionUsage
	// endRecorded is set if the record contains the end of this action; end receives its
	// end.
	endRecorded bool
	end         *actionRecord
	// nonRepeating is set if this action, or one around it, need not repeat its calls.
	nonRepeating bool

	j *journal
	// prefix begins the paths of calls, calls counts them.
	prefix string
	calls  int
}

var _ turn.Ops = (*ops)(nil)

// Limits of requests, of op log (per turn) and of op history (per page).
const (
	maxLogLine   = 4 << 10
	maxLogLines  = 1000
	maxPage      = 200
	defaultPage  = 50
	maxPageBytes = 1 << 20
	maxRequest   = 2 << 20
)

// lookup returns the handler of an op, or the error for an invalid call.
func (o *ops) lookup(ctx context.Context, op abi.Op, req []byte) (handler, *abi.Error) {
	h, ok := o.table[op]
	switch {
	case ctx.Err() != nil && op != abi.OpLog: // a last log line is still accepted
		return handler{}, turn.CancelledError(ctx, op.String())
	case !ok:
		return handler{}, unsupported(op)
	case len(req) > maxRequestSize(op):
		return handler{}, abi.Errorf(abi.CodeLimit, op, "size", "a request of %d bytes, at most %d", len(req), maxRequestSize(op))
	case !utf8.Valid(req):
		return handler{}, abi.Errorf(abi.CodeInvalid, op, "utf8", "the request is not UTF-8")
	}
	if fault := o.checkAgentOnly(op); fault != nil {
		return handler{}, fault
	}
	if h.dispatch != nil {
		if other, ok := h.dispatch(o, req); ok {
			return other, nil
		}
	}
	return h, nil
}

// maxRequestSize bounds the request of an op, in bytes. Blobs have the largest limit.
func maxRequestSize(op abi.Op) int {
	if op == abi.OpBlobPut {
		return turn.MaxRequest
	}
	return maxRequest
}

// unsupported distinguishes an op that this host lacks from an unknown op.
func unsupported(op abi.Op) *abi.Error {
	what := fmt.Sprintf("has no op %d", op)
	if info, known := abi.Lookup(op); known {
		what = fmt.Sprintf("does not offer op %d (%s) yet", op, info.Name)
	}
	return abi.Errorf(abi.CodeUnsupported, op, "op",
		"this host (ABI %d) %s; upgrade skep, or build the module without it", abi.Version, what)
}

// decode decodes a request, see [abi.ReadRequest].
func decode(op abi.Op, req []byte, into any) *abi.Error {
	if err := abi.ReadRequest(req, into); err != nil {
		return abi.Errorf(abi.CodeInvalid, op, "json", "%s: %v", op, err)
	}
	return nil
}

func encode(op abi.Op, v any) ([]byte, *abi.Error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, abi.Errorf(abi.CodeInternal, op, "encode", "answer: %v", err)
	}
	return raw, nil
}

func (o *ops) log(req []byte) ([]byte, *abi.Error) {
	if len(req) > maxLogLine {
		return nil, abi.Errorf(abi.CodeLimit, abi.OpLog, "size", "a log line of %d bytes, at most %d", len(req), maxLogLine)
	}
	if o.j.logs >= maxLogLines {
		return nil, abi.Errorf(abi.CodeLimit, abi.OpLog, "lines", "a turn may log %d lines", maxLogLines)
	}
	var line abi.LogRequest
	if fault := decode(abi.OpLog, req, &line); fault != nil {
		return nil, fault
	}
	o.j.logs++
	o.turn.Log(line)
	return []byte("{}"), nil
}

func (o *ops) clockNow() ([]byte, *abi.Error) {
	now := o.now()
	o.clock.Advance(now)
	return encode(abi.OpClockNow, abi.ClockResponse{Time: abi.FormatTime(now)})
}

func (o *ops) random() ([]byte, *abi.Error) {
	var b [16]byte
	if o.ids == nil {
		b = o.turn.Random()
	} else {
		binary.LittleEndian.PutUint64(b[:8], o.ids.Uint64())
		binary.LittleEndian.PutUint64(b[8:], o.ids.Uint64())
	}
	return encode(abi.OpRandom, abi.RandomResponse{Value: hex.EncodeToString(b[:])})
}

func (o *ops) history(ctx context.Context, req []byte) ([]byte, *abi.Error) {
	var ask abi.HistoryRequest
	if fault := decode(abi.OpHistory, req, &ask); fault != nil {
		return nil, fault
	}
	if ask.After < 0 || ask.Limit < 0 {
		return nil, abi.Errorf(abi.CodeInvalid, abi.OpHistory, "range", "after and limit must not be negative")
	}
	if ask.Limit == 0 {
		ask.Limit = defaultPage
	}
	ask.Limit = min(ask.Limit, maxPage)
	entries, err := o.turn.History(ctx, ask.After, ask.Limit)
	if err != nil {
		if fault := turn.CancelledError(ctx, abi.OpHistory.String()); fault != nil {
			return nil, fault
		}
		return nil, abi.Errorf(abi.CodeInternal, abi.OpHistory, "store", "the history cannot be read")
	}
	page, more := fitPage(entries, maxPageBytes)
	rsp := abi.HistoryResponse{Entries: page}
	if n := len(page); n > 0 && (more || page[n-1].Seq < o.turn.HistoryCount()) {
		rsp.Next = page[n-1].Seq
	}
	return encode(abi.OpHistory, rsp)
}

// fitPage returns as many entries as fit into bytes, at least one, and whether more are
// left.
func fitPage(entries []abi.HistoryEntry, bytes int) (page []abi.HistoryEntry, more bool) {
	page = []abi.HistoryEntry{}
	for _, e := range entries {
		size := len(e.Message) + len(e.Note)
		if e.Call != nil {
			size += len(e.Call.Args)
		}
		if e.Result != nil {
			size += len(e.Result.Text)
		}
		if bytes -= size; bytes < 0 && len(page) > 0 {
			return page, true
		}
		page = append(page, e)
	}
	return page, false
}

func (o *ops) mail(req []byte) ([]byte, *abi.Error) {
	var ask abi.MailRequest
	if fault := decode(abi.OpMail, req, &ask); fault != nil {
		return nil, fault
	}
	if ask.Tool == "" {
		return nil, abi.Errorf(abi.CodeInvalid, abi.OpMail, "tool", "mail: tool is missing; it must be the name of a tool")
	}
	rsp, fault := o.turn.CallMailTool(ask)
	if fault != nil {
		return nil, fault
	}
	return encode(abi.OpMail, rsp)
}
