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
	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
)

// ops answers the op calls of one turn, on the turn's goroutine.
type ops struct {
	turn  *swarm.Turn
	table table
	clock sandbox.Clock
	now   func() time.Time // the host's
	allow Allow
	web   Fetcher
	spent *spent
	// models are those of the operator.
	models map[string]Model
	// actions are those with code that may be called. action is the one that these
	// are the ops of, nil for the agent's own.
	actions map[string]*Action
	action  *Action
	forms   map[string]Form
	modules Modules
	cpu     sandbox.CPU
	seed    [32]byte
	ids     *rand.ChaCha8 // of op random in an action
	taken   *taken
	// decided says that the record has how this action ends, ended is how it did.
	decided bool
	ended   *ran
	// fleeting says that this action, or one that it runs in, need not do again what
	// it did.
	fleeting bool

	j *journal
	// prefix begins the paths of calls, and calls counts them.
	prefix string
	calls  int
}

var _ sandbox.Ops = (*ops)(nil)

// Bounds of most requests, of op log (per turn) and of op history (per page).
const (
	maxLogLine   = 4 << 10
	maxLogLines  = 1000
	maxPage      = 200
	defaultPage  = 50
	maxPageBytes = 1 << 20
	maxRequest   = 2 << 20
)

// find returns how an op is done, unless the call itself is no good.
func (o *ops) find(ctx context.Context, op abi.Op, req []byte) (handler, *abi.Error) {
	h, ok := o.table[op]
	switch {
	case ctx.Err() != nil && op != abi.OpLog: // last words are heard
		return handler{}, sandbox.CalledOff(ctx, op.String())
	case !ok:
		return handler{}, unsupported(op)
	case len(req) > largest(op):
		return handler{}, abi.Errorf(abi.CodeLimit, op, "size", "a request of %d bytes, at most %d", len(req), largest(op))
	case !utf8.Valid(req):
		return handler{}, abi.Errorf(abi.CodeInvalid, op, "utf8", "the request is not UTF-8")
	}
	if fault := o.forAgents(op); fault != nil {
		return handler{}, fault
	}
	if h.by != nil {
		if other, ok := h.by(o, req); ok {
			return other, nil
		}
	}
	return h, nil
}

// largest bounds the request of an op. Blobs come as large as anything can.
func largest(op abi.Op) int {
	if op == abi.OpBlobPut {
		return sandbox.MaxRequest
	}
	return maxRequest
}

// unsupported tells an op that a later host may have from one that nobody knows.
func unsupported(op abi.Op) *abi.Error {
	what := fmt.Sprintf("has no op %d", op)
	if info, known := abi.Lookup(op); known {
		what = fmt.Sprintf("does not offer op %d (%s) yet", op, info.Name)
	}
	return abi.Errorf(abi.CodeUnsupported, op, "op",
		"this host (ABI %d) %s; upgrade skep, or build the module without it", abi.Version, what)
}

// decode reads a request as [abi.ReadRequest] does.
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
		if fault := sandbox.CalledOff(ctx, abi.OpHistory.String()); fault != nil {
			return nil, fault
		}
		return nil, abi.Errorf(abi.CodeInternal, abi.OpHistory, "store", "the history cannot be read")
	}
	page, more := fit(entries, maxPageBytes)
	rsp := abi.HistoryResponse{Entries: page}
	if n := len(page); n > 0 && (more || page[n-1].Seq < o.turn.HistoryCount()) {
		rsp.Next = page[n-1].Seq
	}
	return encode(abi.OpHistory, rsp)
}

// fit returns as many entries as stay within bytes, one at least, and whether
// some are left over.
func fit(entries []abi.HistoryEntry, bytes int) (page []abi.HistoryEntry, more bool) {
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
	rsp, fault := o.turn.Mail(ask)
	if fault != nil {
		return nil, fault
	}
	return encode(abi.OpMail, rsp)
}
