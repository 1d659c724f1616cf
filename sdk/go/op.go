package skep

import (
	"encoding/json"
	"fmt"
	"time"

	"skep/sdk/go/internal/abi"
)

// Op is the number of one host operation.
type Op int32

// Ops by number. Which of them a host has built, and which it grants to an
// agent, differs; the others answer [Unsupported] or [Denied].
const (
	OpLog          = Op(abi.OpLog)
	OpClockNow     = Op(abi.OpClockNow)
	OpRandom       = Op(abi.OpRandom)
	OpHistory      = Op(abi.OpHistory)
	OpMail         = Op(abi.OpMail)
	OpAction       = Op(abi.OpAction)
	OpEmit         = Op(abi.OpEmit)
	OpKVGet        = Op(abi.OpKVGet)
	OpKVPut        = Op(abi.OpKVPut)
	OpKVDelete     = Op(abi.OpKVDelete)
	OpKVList       = Op(abi.OpKVList)
	OpKVCas        = Op(abi.OpKVCas)
	OpHTTPFetch    = Op(abi.OpHTTPFetch)
	OpLLMChat      = Op(abi.OpLLMChat)
	OpSecretExists = Op(abi.OpSecretExists)
	OpTimerSet     = Op(abi.OpTimerSet)
	OpTimerCancel  = Op(abi.OpTimerCancel)
	OpMetric       = Op(abi.OpMetric)
	OpSpan         = Op(abi.OpSpan)
	OpBlobGet      = Op(abi.OpBlobGet)
	OpBlobPut      = Op(abi.OpBlobPut)
)

// String returns the op's name, for instance kv.get.
func (o Op) String() string {
	for _, row := range abi.Ops() {
		if row.Op == abi.Op(o) {
			return row.Name
		}
	}
	return fmt.Sprintf("op %d", int32(o))
}

// OpByName finds an op by its name.
func OpByName(name string) (Op, bool) {
	for _, row := range abi.Ops() {
		if row.Name == name {
			return Op(row.Op), true
		}
	}
	return 0, false
}

// Call runs any op: req is encoded as JSON unless it is bytes already, the
// answer is decoded into rsp unless rsp is nil; a *json.RawMessage gets it as
// it is. A refusal is an [*Error].
func (t *Turn) Call(op Op, req, rsp any) error {
	raw, err := encode(req)
	if err != nil {
		return fmt.Errorf("%s: request: %w", op, err)
	}
	body, err := t.perform(op, raw)
	if err != nil || rsp == nil || len(body) == 0 {
		return err
	}
	if err := json.Unmarshal(body, rsp); err != nil {
		return fmt.Errorf("%s: answer: %w", op, err)
	}
	return nil
}

// perform runs an op. The answer is valid until the next call.
func (t *Turn) perform(op Op, req []byte) ([]byte, error) {
	body, code := t.host.Call(abi.Op(op), req)
	if code != abi.CodeOK {
		return nil, hostError(op.String(), code, body)
	}
	return body, nil
}

// Level is the weight of a log line.
type Level string

// The levels.
const (
	LevelDebug Level = "debug"
	LevelInfo  Level = "info"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)

// Log writes a line to the operator's log, with keys and values in turn as in
// log/slog: t.Log("priced", "item", "tea", "cents", 250). A line the host
// refuses (there is a quota) is lost without a trace.
func (t *Turn) Log(message string, keyvals ...any) { t.LogAt(LevelInfo, message, keyvals...) }

// LogAt is Log with a level.
func (t *Turn) LogAt(level Level, message string, keyvals ...any) {
	req := abi.LogRequest{Level: string(level), Message: message, Fields: fields(keyvals)}
	if t.Call(OpLog, req, nil) != nil {
		return
	}
}

func fields(keyvals []any) map[string]any {
	if len(keyvals) == 0 {
		return nil
	}
	m := make(map[string]any, len(keyvals)/2)
	for i := 0; i < len(keyvals); i += 2 {
		key := fmt.Sprint(keyvals[i])
		if i+1 == len(keyvals) {
			m["!last"] = key
			break
		}
		m[key] = plain(keyvals[i+1])
	}
	return m
}

// plain makes errors and Stringers readable in JSON.
func plain(v any) any {
	switch v := v.(type) {
	case error:
		return v.Error()
	case fmt.Stringer:
		return v.String()
	}
	return v
}

// WallTime asks the host for the real time. The answer is recorded, and moves
// the turn's clock.
func (t *Turn) WallTime() (time.Time, error) {
	var rsp abi.ClockResponse
	if err := t.Call(OpClockNow, nil, &rsp); err != nil {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339Nano, rsp.Time)
	if err != nil {
		return time.Time{}, fmt.Errorf("clock.now: answer: %w", err)
	}
	return at, nil
}

// Random returns 32 hexadecimal digits that differ between turns and repeat
// when a turn runs again. In a module crypto/rand gives the same guarantee;
// math/rand does not: its seed is part of the image and the same in every turn.
func (t *Turn) Random() (string, error) {
	var rsp abi.RandomResponse
	err := t.Call(OpRandom, nil, &rsp)
	return rsp.Value, err
}
