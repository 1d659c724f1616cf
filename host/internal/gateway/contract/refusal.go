package contract

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/api/audit"
	"skep/host/internal/hosttest"
)

// agentFails: an agent that traps, runs out of something or does not answer has failed,
// and its caller learns nothing of the inside.
func (s *suite) agentFails(t *testing.T) {
	call := hosttest.Step{"random", hosttest.Args{}}
	for name, text := range map[string]string{
		"trap":  hosttest.Script(hosttest.Step{"trap", hosttest.Args{}}),
		"limit": hosttest.Script(hosttest.Step{"loop", hosttest.Args{}}),
		"calls": hosttest.Script(call, call, call, call, call, finish("more than it may")),
		"quiet": hosttest.Script(call),
	} {
		t.Run(name, func(t *testing.T) {
			s.roles(t, "16", func(t *testing.T, c caller) {
				got := send(t, s.dial(t, c.token), Message{ID: id(t, "1"), To: "weak", Text: text})
				if got.Status != Failed {
					t.Fatalf("got %s %q", got.Status, got.Text)
				}
				for _, inside := range []string{"wasm", "script.", "LIMIT", "cpu", "host_calls", "turn", "::", "stall"} {
					if strings.Contains(got.Text+got.Subject, inside) {
						t.Errorf("the caller is shown %q %q", got.Subject, got.Text)
					}
				}
			})
		})
	}
}

// deadlines: a caller whose time is over is told so, and the turn is called off when no
// other caller waits; a foreign answer that comes too late changes nothing.
func (s *suite) deadlines(t *testing.T) {
	s.roles(t, "17", func(t *testing.T, c caller) {
		cl, key := s.dial(t, c.token), "deadline-"+c.role
		m := Message{ID: id(t, "1"), To: "boss", By: time.Now().Add(2 * time.Second), Text: hosttest.Script(s.web.hold(key), finish("too late"))}
		got, err := cl.Send(t.Context(), m)
		if err == nil && got.Status != Cancelled && got.Status != Failed {
			t.Errorf("got %s %q", got.Status, got.Text)
		}
		if s.web.count("/hold/"+key) > 0 {
			until(t, "the turn is called off", s.web.channel(s.web.over, "/hold/"+key))
		}
		m.ID, m.By = id(t, "2"), time.Now().Add(-time.Minute)
		_, err = cl.Send(t.Context(), m)
		wantRefused(t, err, Invalid, Unsaid)
	})
	t.Run("late answer", func(t *testing.T) {
		s.part(t, "17/late", func() { s.lateAnswer(t) })
	})
}

// lateAnswer: a foreign agent answers after its time. Our agent has the failure alone.
func (s *suite) lateAnswer(t *testing.T) {
	text, release := "take your time", make(chan struct{})
	s.foreign.on(text, s.foreign.held(release))
	got := s.ask(t, s.p.agentOf("late"), text)
	close(release)
	if strings.Contains(got, "too late") || !strings.Contains(got, "boss got [") {
		t.Errorf("got %q", got)
	}
	again, err := s.as(t, aliceToken).Task(t.Context(), id(t, "task"))
	if err != nil || !again.Completed {
		t.Errorf("the task is %+v, %v", again, err)
	}
}

// cancelIn: a message that its caller withdraws is called off.
func (s *suite) cancelIn(t *testing.T) {
	s.roles(t, "18", func(t *testing.T, c caller) {
		cl, key := s.dial(t, c.token), "cancel-"+c.role
		m := Message{ID: id(t, "1"), To: "boss", Thread: id(t, "thread"), Text: hosttest.Script(s.web.hold(key), finish("done"))}
		waits := later(t, cl, m)
		s.web.held(t, key)
		if err := cl.Cancel(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		until(t, "the turn is called off", s.web.channel(s.web.over, "/hold/"+key))
		if got := receive(t, "the call ends", waits); got.err == nil && got.Status != Cancelled {
			t.Errorf("the call has %s %q", got.Status, got.Text)
		}
		if got, err := cl.Look(t.Context(), m); err != nil || got.Status != Cancelled {
			t.Errorf("the message has %s, %v", got.Status, err)
		}
	})
}

// content is the content of a part of so many bytes, and its name as a blob.
func content(seed string, size int) (data []byte, blob string) {
	data = bytes.Repeat([]byte(seed+"\x00\xff"), size/(len(seed)+2)+1)[:size]
	sum := sha256.Sum256(data)
	return data, hex.EncodeToString(sum[:])
}

// binary: what is not text comes in as a blob that the agent is told of, and goes out as
// one: 10 MiB, and less for the second role.
func (s *suite) binary(t *testing.T) {
	s.roles(t, "25", func(t *testing.T, c caller) {
		size := 64 << 10
		if c.token == s.token() {
			size = binaryBytes
		}
		data, blob := content(c.role, size)
		m := Message{ID: id(t, "1"), To: "boss", Parts: []Part{{Name: "scan", Type: "application/x-scan", Data: data}},
			Text: hosttest.Script(finish("here: blob:" + blob + "?type=application/x-scan&name=scan"))}
		got := send(t, s.dial(t, c.token), m)
		if got.Status != Done || len(got.Parts) != 1 || got.Parts[0].Type != "application/x-scan" || !bytes.Equal(got.Parts[0].Data, data) {
			t.Fatalf("got %s %q with %d parts", got.Status, got.Text, len(got.Parts))
		}
	})
}

// unknownMembers: what no side knows reaches the agent, and comes back where the protocol
// has a place for it.
func (s *suite) unknownMembers(t *testing.T) {
	s.roles(t, "26", func(t *testing.T, c caller) {
		cl := s.dial(t, c.token)
		got := send(t, cl, Message{ID: id(t, "1"), To: "boss", Extra: map[string]any{"color": "octarine"}, Text: hosttest.Script(finish("done"))})
		wantText(t, got, nil, "done")
		if _, lost := s.p.Without["26/back"]; !lost && got.Extra["color"] != "octarine" {
			t.Errorf("the answer has %v", got.Extra)
		}
		history := hosttest.Step{"history", hosttest.Args{"after": 0, "limit": 10}}
		seen := send(t, cl, Message{ID: id(t, "2"), To: "boss", Thread: got.Thread, Text: hosttest.Script(history, finish("{{0}}"))})
		if !strings.Contains(seen.Text, "octarine") {
			t.Errorf("the agent saw %s", seen.Text)
		}
	})
	t.Run("back", func(t *testing.T) { s.part(t, "26/back", func() {}) })
}

// refusedEarly: what is too large, too deep, ambiguous, no text or too much is refused, and
// nothing is written for it. It runs alone: the writes of the store are watched.
func (s *suite) refusedEarly(t *testing.T) {
	s.version = hosttest.StoreVersion(t, s.site.Data)
	cl := s.dial(t, s.token())
	const mark = "MARK"
	for name, c := range map[string]struct {
		change  func(body string) string
		reasons []Reason
	}{
		"size": {func(b string) string { return strings.ReplaceAll(b, mark, strings.Repeat("x", 25<<20)) }, []Reason{Large, Unsaid}},
		"depth": {func(b string) string {
			return strings.ReplaceAll(b, `"`+mark+`"`, strings.Repeat("[", 70)+strings.Repeat("]", 70))
		}, []Reason{Invalid, Unsaid}},
		"duplicate": {func(b string) string { return strings.Replace(b, "{", `{"twice":1,"twice":2,`, 1) }, []Reason{Invalid, Unsaid}},
		"UTF-8":     {func(b string) string { return strings.ReplaceAll(b, mark, "\xff\xfe") }, []Reason{Invalid, Unsaid}},
		"cut off":   {func(b string) string { return b[:len(b)-2] }, []Reason{Invalid, Unsaid}},
	} {
		t.Run(name, func(t *testing.T) {
			s.part(t, "28/"+name, func() {
				m := Message{ID: id(t, "1"), To: "boss", Thread: id(t, "thread"), Text: mark}
				body := []byte(c.change(string(cl.Encode(m))))
				s.unwritten(t, func() {
					_, err := cl.Post(t.Context(), body)
					wantRefused(t, err, c.reasons...)
				})
				_, err := cl.Look(t.Context(), m)
				wantRefused(t, err, Unknown)
			})
		})
	}
	t.Run("a message that is taken", func(t *testing.T) {
		before := s.version()
		if send(t, cl, Message{ID: id(t, "1"), To: "boss", Text: hosttest.Script(finish("fine"))}); s.version() == before {
			t.Error("the store has not changed: its writes are not seen")
		}
	})
	t.Run("open asks", func(t *testing.T) { s.part(t, "28/asks", func() { s.openAsks(t) }) })
	t.Run("rate", func(t *testing.T) { s.part(t, "28/rate", func() { s.rate(t) }) })
}

// openAsks: a realm has so many asks open at once, and one more is refused.
func (s *suite) openAsks(t *testing.T) {
	cl := s.dial(t, greedyToken)
	for n := range openAsks {
		key := fmt.Sprintf("asks-%d", n)
		s.background(t, cl, Message{ID: id(t, key), To: "boss", Text: hosttest.Script(s.web.hold(key), finish("done"))}, key)
		t.Cleanup(func() { s.web.free(key) })
	}
	m := Message{ID: id(t, "more"), To: "boss", Thread: id(t, "thread"), Text: "hello"}
	s.unwritten(t, func() {
		_, err := cl.Send(t.Context(), m)
		wantRefused(t, err, Busy)
	})
	_, err := cl.Look(t.Context(), m)
	wantRefused(t, err, Unknown)
}

// rate: a caller sends so many messages in a time, and one more is refused.
func (s *suite) rate(t *testing.T) {
	token := chattyToken
	if !s.p.Realms {
		token = chloeToken
	}
	cl, m := s.dial(t, token), Message{ID: id(t, "1"), To: "boss", Thread: id(t, "thread"), Text: hosttest.Script(finish("done"))}
	for range 2 * messagesInTime { // on a slow machine places come free meanwhile
		if _, err := cl.Send(t.Context(), m); err != nil {
			wantRefused(t, err, Busy)
			break
		}
	}
	s.unwritten(t, func() {
		_, err := cl.Send(t.Context(), m)
		if err == nil {
			_, err = cl.Send(t.Context(), m)
		}
		wantRefused(t, err, Busy)
	})
}

// attempts is how often a refusal is looked at: what else the host does may write
// meanwhile.
const attempts = 50

// unwritten fails if each time that a message is refused the store has changed.
func (s *suite) unwritten(t *testing.T, refuse func()) {
	t.Helper()
	for range attempts {
		before := s.version()
		if refuse(); s.version() == before {
			return
		}
	}
	t.Errorf("the store has changed with each of %d refusals", attempts)
}

// auditLines: each refusal is in the audit log, as equal ones with their number, and so is
// the caller's first message; both name the caller.
func (s *suite) auditLines(t *testing.T) {
	token, who, ok := s.watched.token, "agent:"+s.watched.name, Message{To: "math", Text: "2+2"}
	if !s.p.Realms {
		token, who, ok = waltToken, "user:walt", Message{To: "boss", Text: hosttest.Script(finish("fine"))}
	}
	unseen := []string{"nobody", "hidden"}
	if s.p.Realms { // its table lists math alone
		unseen = []string{"boss", "boss"}
	}
	for n, to := range unseen {
		_, err := s.dial(t, token).Send(t.Context(), Message{ID: id(t, fmt.Sprint("refused-", n)), To: to, Text: "hello"})
		wantRefused(t, err, Unknown)
	}
	hosttest.Eventually(t, "2 refusals in the audit log", func() bool { return s.audited(who, "gateway.message") == 2 })
	s.refusalEvents(t, who)
	if n := s.audited(who, "gateway.contact"); n > 0 {
		t.Errorf("%d contacts by refused messages", n)
	}
	for _, name := range []string{"ok", "again"} {
		ok.ID, ok.Thread = id(t, name), id(t, name)
		if _, err := s.dial(t, token).Send(t.Context(), ok); err != nil {
			t.Fatal(err)
		}
	}
	hosttest.Eventually(t, "one line for the first message", func() bool { return s.audited(who, "gateway.contact") == 1 })
	s.messageLines(t, who)
}

// refusalEvents: the live feed shows an operator whom the gateway has refused, and why in a word.
func (s *suite) refusalEvents(t *testing.T, who string) {
	n := int64(0)
	for e, err := range s.as(t, operatorToken).Pulse(t.Context(), client.PulseQuery{Kinds: []string{"refusal"}, Kept: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Act != "gateway.message" || e.Principal != who {
			continue
		}
		n += max(1, e.Count)
		if !strings.HasPrefix(e.Target, s.p.Name+" ") || e.Cause != "not_found" {
			t.Errorf("a refusal is shown as %+v", e)
		}
	}
	if n != 2 {
		t.Errorf("the feed has %d of 2 refusals", n)
	}
}

// audited counts the acts of a caller in the audit log; it is -1 while the host writes.
func (s *suite) audited(who, act string) (n int64) {
	err := audit.Entries(filepath.Join(s.site.Data, audit.Name), func(_ int64, e audit.Entry) {
		if e.Principal == who && e.Act == act {
			n += max(1, e.Count)
		}
	}, nil)
	if err != nil {
		return -1
	}
	return n
}

// messageLines (G-058): the log of messages is whole, and has what became of each message of
// a caller.
func (s *suite) messageLines(t *testing.T, who string) {
	var verdicts []string
	file := filepath.Join(s.site.Data, audit.MessagesName)
	err := audit.Entries(file, func(_ int64, e audit.Entry) {
		m := e.Message
		if m == nil || e.Principal != who || s.outbox && m.Direction == audit.Out {
			return
		}
		verdicts = append(verdicts, e.Outcome)
		if m.Gateway != s.p.Name || m.Direction != audit.In || e.Outcome == "accepted" && (m.ID == "" || m.Size == 0 || len(m.SHA256) != 64 || m.Task == "") {
			t.Errorf("a line of %s is %+v", e.Outcome, *m)
		}
	}, nil)
	if want := []string{audit.Refused, audit.Refused, "accepted", "accepted"}; err != nil || !slices.Equal(verdicts, want) {
		t.Errorf("the log of messages has %q, %v; want %q", verdicts, err, want)
	}
}

// noSecrets: no token stands in the log, the audit log, or any other file of the host.
func (s *suite) noSecrets(t *testing.T) {
	written := map[string][]byte{"the log": s.log.Bytes(), "a file": s.site.Files(t), "the export": s.site.Exported(t)}
	tokens := []string{outToken}
	for _, c := range callers {
		tokens = append(tokens, c.token)
	}
	for _, token := range tokens {
		for where, text := range written {
			if bytes.Contains(text, []byte(token)) {
				t.Errorf("%s has the token %q", where, token)
			}
		}
	}
}
