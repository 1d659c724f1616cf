package messagelog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"

	"skep/host/internal/api/audit"
	"skep/host/internal/gateway"
	"skep/host/internal/telemetry"
)

// Act is the act of an entry about a message.
const Act = "message"

// Options of [Open].
type Options struct {
	// Keep bounds the older files in bytes; zero keeps all.
	Keep int64
	// Refusals is where messages that were refused are recorded too, and each caller's
	// first one: they matter to the security of the host.
	Refusals *audit.Log
	Logger   *slog.Logger
}

// maxContacts bounds the callers that are remembered. Beyond it all are forgotten, and
// their next messages are first ones again.
const maxContacts = 10_000

// contact is a caller of a gateway.
type contact struct{ gateway, tenant, principal string }

// Log is an open log. It is safe for concurrent use.
type Log struct {
	opt   Options
	file  *audit.Log
	lines *telemetry.LineLimiter

	mu       sync.Mutex
	contacts map[contact]struct{}
}

// Open opens or creates the log in a data directory, and records that.
func Open(dir string, opt Options) (*Log, error) {
	file, err := audit.Open(filepath.Join(dir, audit.MessagesName), audit.Options{Sole: true, Keep: opt.Keep, Logger: opt.Logger})
	if err != nil {
		return nil, err
	}
	if err := file.Record(audit.Entry{Act: "host.start", Outcome: audit.Done}); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Log{opt: opt, file: file, lines: telemetry.NewLineLimiter(), contacts: map[contact]struct{}{}}, nil
}

// Run has what was recorded on disk within a second, until ctx ends.
func (l *Log) Run(ctx context.Context) { l.file.Run(ctx) }

// Close closes the log, which may be nil. The host's log gets its head.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	err := l.file.Close()
	seq, head := l.file.Head()
	l.opt.Logger.Info("the log of messages is closed", "entries", seq, "head", head)
	return err
}

// Record writes an event of a gateway. A gateway records a message before it answers its
// sender, so that the log has all that was acknowledged, after a crash of the host too. A
// line that cannot be written is counted in a later one: the message stands.
func (l *Log) Record(name string, e gateway.Event) {
	entry := entryOf(name, e)
	// The log itself records why it cannot be written.
	_ = l.file.Append(entry)
	act := audit.Entry{Tenant: entry.Tenant, Principal: entry.Principal, Target: name}
	switch {
	case entry.Outcome == audit.Refused:
		act.Act, act.Target, act.Reason = "gateway.message", name+" "+cut(e.Type), e.Reason
		act.Cause, act.Key = cmp.Or(e.Cause, gateway.CauseInvalid), e.Key
		l.opt.Refusals.RecordRefusal(act)
		l.logRefusal(name, entry, act)
	case !e.Out && l.isFirst(contact{name, entry.Tenant, entry.Principal}):
		act.Act, act.Outcome = "gateway.contact", audit.Done
		_ = l.opt.Refusals.Append(act) // that log counts what it cannot write, too
	}
}

// refusalLine is the text of the log's lines about refusals.
const refusalLine = "a message was refused"

// logRefusal logs a refusal without its reason, which may quote what the message says. The partner finds
// the message by its id.
func (l *Log) logRefusal(name string, entry, act audit.Entry) {
	skipped, ok := l.lines.Admit(telemetry.LineKind{Tenant: entry.Tenant, Text: refusalLine, Cause: act.Cause}, time.Now())
	if !ok {
		return
	}
	m := entry.Message
	attrs := []any{"gateway", name, "tenant", entry.Tenant, "principal", entry.Principal, "partner", m.Realm, "message_id", cut(m.ID), "type", cut(m.Type), "cause", act.Cause}
	if act.Key != "" {
		attrs = append(attrs, "key", act.Key)
	}
	if skipped > 0 {
		attrs = append(attrs, "lines_skipped", skipped)
	}
	l.opt.Logger.Info(refusalLine, attrs...)
}

// cut bounds what a partner has named, an id or a type of its protocol, to 64 characters, and replaces
// those that move a terminal or turn a line around.
func cut(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, fmt.Sprintf("%.64s", name))
}

// isFirst reports whether a caller was not seen since the host started, and remembers it.
func (l *Log) isFirst(c contact) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.contacts[c]; known {
		return false
	}
	if len(l.contacts) == maxContacts {
		clear(l.contacts)
	}
	l.contacts[c] = struct{}{}
	return true
}

func entryOf(name string, e gateway.Event) audit.Entry {
	p := e.Caller.Principal
	m := &audit.Message{Gateway: name, Realm: e.Caller.Realm, Direction: audit.In, ID: e.Foreign, Type: e.Type, Size: len(e.Text), Task: e.Task}
	if e.Out {
		m.Direction = audit.Out
	}
	if len(e.Text) > 0 {
		hash := sha256.Sum256(e.Text)
		m.SHA256 = hex.EncodeToString(hash[:])
	}
	who := ""
	if p.ID != "" { // else the peer has shown no credential
		who = strings.TrimPrefix(p.String(), p.Tenant+"/")
	}
	return audit.Entry{Act: Act, Outcome: e.Verdict, Tenant: p.Tenant, Principal: who, Reason: e.Reason, Message: m}
}
