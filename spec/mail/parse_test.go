package mail_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"skep/spec/mail"
)

func raw(t *testing.T, m mail.Message) string {
	t.Helper()
	b, err := m.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestParseOptions: what peers send in good faith can be let in, what has
// two readings cannot.
func TestParseOptions(t *testing.T) {
	t.Parallel()
	plain := raw(t, request())
	with := func(members string) string { return strings.Replace(plain, `,"body"`, members+`,"body"`, 1) }
	nulls := mail.ParseOptions{NullsAbsent: true}
	unknown := mail.ParseOptions{UnknownKeys: true}
	loose := mail.ParseOptions{LooseTimes: true}
	at := func(time string) string { return strings.Replace(plain, `"`+noon+`"`, `"`+time+`"`, 1) }
	for _, tc := range []struct {
		name string
		opts mail.ParseOptions
		in   string
		want string // the error's path; "" for none
	}{
		{"nulls", nulls, with(`,"sender_swarm":null,"recipient_swarm":null,"routing_info":null`), ""},
		{"nulls, strict", mail.ParseOptions{}, with(`,"sender_swarm":null`), "message.sender_swarm"},
		{"null in a required field", nulls, strings.Replace(plain, `"How full?"`, "null", 1), "message.body"},
		{"null in an unknown key", nulls, with(`,"x":null`), "message.x"},
		{"null and a value", nulls, with(`,"sender_swarm":null,"sender_swarm":"a"`), "message.sender_swarm"},
		{"a value and null", nulls, with(`,"sender_swarm":"a","sender_swarm":null`), "message.sender_swarm"},
		{"no null", nulls, with(`,"sender_swarm":nul`), "message.sender_swarm"},
		{"unknown keys", unknown, with(`,"x":{"y":[1,2.5e-1,true,null,"\n"]},"z":false`), ""},
		{"unknown key twice", unknown, with(`,"x":1,"x":1`), "message.x"},
		{"unknown key in another case", unknown, with(`,"Body":""`), "message.Body"},
		{"unknown key with a broken value", unknown, with(`,"x":{"y":[1,-]}`), "message.x.y[1]"},
		{"a spaced time", loose, at(strings.Replace(noon, "T", " ", 1)), ""},
		{"a spaced time, escaped", loose, at(strings.Replace(noon, "T", "\\u0020", 1)), ""},
		{"a time with a T", loose, plain, ""},
		{"a spaced time, strict", mail.ParseOptions{NullsAbsent: true, UnknownKeys: true}, at(strings.Replace(noon, "T", " ", 1)), "timestamp"},
		{"two spaces", loose, at(strings.Replace(noon, "T", "  ", 1)), "timestamp"},
		{"a small t", loose, at(strings.Replace(noon, "T", "t", 1)), "timestamp"},
		{"a day and a space", loose, at("2026-03-01 "), "timestamp"},
		{"a time without a zone", loose, at(strings.TrimSuffix(noon, "+00:00")), ""},
		{"a spaced time without a zone", loose, at(strings.Replace(strings.TrimSuffix(noon, "+00:00"), "T", " ", 1)), ""},
		{"a time without a zone, strict", mail.ParseOptions{}, at(strings.TrimSuffix(noon, "+00:00")), "timestamp"},
		{"a time without seconds", loose, at("2026-03-01T09:30"), "timestamp"},
		{"null is no unknown key", unknown, with(`,"routing_info":null`), "message.routing_info"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m, err := tc.opts.Message([]byte(tc.in))
			var fe *mail.FieldError
			switch errors.As(err, &fe); {
			case tc.want == "" && err != nil:
				t.Errorf("error %v", err)
			case tc.want == "" && raw(t, m) != plain:
				t.Errorf("read as %s, want %s", raw(t, m), plain)
			case tc.want != "" && (fe == nil || fe.Path != tc.want):
				t.Errorf("error %v, want a fault at %s", err, tc.want)
			}
		})
	}
	if _, err := nulls.Interswarm([]byte(`{"metadata":null,"auth_token":null,"task_owner":null}`)); err == nil {
		t.Error("a wrapper without an owner was read")
	}
	wrapped, err := wrapper().AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := loose.Interswarm(bytes.Replace(wrapped, []byte("T12"), []byte(" 12"), 1))
	if err != nil || w.Timestamp != noon {
		t.Errorf("a wrapper with a spaced time: %q, %v", w.Timestamp, err)
	}
}

// TestLimits: a limit's error names it, and what just fits is taken.
func TestLimits(t *testing.T) {
	t.Parallel()
	nested := func(levels int) string {
		m := request()
		m.Payload.RoutingInfo = []byte(`{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`)
		return raw(t, m)
	}
	to := func(n int) string {
		m := broadcast()
		m.Payload.Recipients = slices.Repeat(m.Payload.Recipients[:1], n)
		return raw(t, m)
	}
	swarms := func(n int) string {
		m := broadcast()
		m.Payload.RecipientSwarms = slices.Repeat([]string{"s"}, n)
		return raw(t, m)
	}
	long := func(n int) string {
		m := request()
		m.Payload.Body = ""
		m.Payload.Body = strings.Repeat("x", n-len(raw(t, m)))
		return raw(t, m)
	}
	for _, tc := range []struct {
		name  string
		limit mail.Limits
		fits  string
		not   string
	}{
		{"bytes", mail.Limits{}, long(mail.DefaultBytes), long(mail.DefaultBytes + 1)},
		{"depth", mail.Limits{}, nested(mail.DefaultDepth - 2), nested(mail.DefaultDepth - 1)},
		{"recipients", mail.Limits{}, to(mail.DefaultRecipients), to(mail.DefaultRecipients + 1)},
		{"recipient swarms", mail.Limits{}, swarms(mail.DefaultRecipients), swarms(mail.DefaultRecipients + 1)},
		{"own bytes", mail.Limits{Bytes: 500}, long(500), long(501)},
		{"own depth", mail.Limits{Depth: 5}, nested(3), nested(4)},
		{"own recipients", mail.Limits{Recipients: 2}, to(2), to(3)},
	} {
		opts := mail.ParseOptions{Limits: tc.limit}
		if _, err := opts.Message([]byte(tc.fits)); err != nil {
			t.Errorf("%s: what fits is refused: %v", tc.name, err)
		}
		if _, err := opts.Message([]byte(tc.not)); !errors.Is(err, mail.ErrLimit) {
			t.Errorf("%s: error %v, want ErrLimit", tc.name, err)
		}
	}
	if _, err := mail.ParseMessage([]byte("{")); errors.Is(err, mail.ErrLimit) {
		t.Errorf("a fault of syntax says that it is a limit: %v", err)
	}
}

// TestOrderOfKeys: msg_type may stand before or behind the payload.
func TestOrderOfKeys(t *testing.T) {
	t.Parallel()
	plain := raw(t, request())
	behind := strings.Replace(strings.Replace(plain, `"msg_type":"request",`, "", 1), `"}}`, `"},"msg_type":"request"}`, 1)
	m, err := mail.ParseMessage([]byte(behind))
	if err != nil || raw(t, m) != plain {
		t.Errorf("%s: %v", behind, err)
	}
	broken := strings.Replace(behind, uuid2, "1", 1)
	if _, err := mail.ParseMessage([]byte(broken)); err == nil || !strings.HasPrefix(err.Error(), "message.request_id: ") {
		t.Errorf("error %v, want a fault at message.request_id", err)
	}
}

// TestParsedSharesNothing: the caller may reuse its buffer.
func TestParsedSharesNothing(t *testing.T) {
	t.Parallel()
	m := request()
	m.Payload.RoutingInfo = []byte(`{"a":1}`)
	buf := []byte(raw(t, m))
	got, err := mail.ParseMessage(buf)
	if err != nil {
		t.Fatal(err)
	}
	clear(buf)
	if raw(t, got) != raw(t, m) {
		t.Errorf("changed with the buffer: %s", raw(t, got))
	}
}

// TestErrorsAreShort: errors name strange keys in print and at bounded length, and
// never quote values.
func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a b\n":1}`:                            `["a b\n"]: is not a known key`,
		`{"":1}`:                                 `[""]: is not a known key`,
		`{"é":1}`:                                `["\u00e9"]: is not a known key`,
		`{"` + strings.Repeat("k", 1e5) + `":1}`: `["` + strings.Repeat("k", 64) + `"…]: is not a known key`,
		`{"msg_type":"secret"}`:                  "msg_type: must be request, response, broadcast, interrupt or broadcast_complete",
		`[]`:                                     "must be an object, not an array",
		`{`:                                      "is not valid JSON: no key at byte 1",
		`{"id":tru}`:                             "id: must be a string, not a boolean",
	} {
		_, err := mail.ParseMessage([]byte(in))
		if err == nil || err.Error() != want {
			t.Errorf("ParseMessage(%.30s) = %v, want %s", in, err, want)
		}
	}
}

// TestManyKeys: looking for duplicates must not cost quadratic time, and finds
// them among many keys as among few.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString(`{`)
	for i := range 200_000 {
		fmt.Fprintf(&b, `"k%d":0,`, i)
	}
	head := b.String()
	m := request()
	for last, ok := range map[string]bool{`"x":0}`: true, `"k0":0}`: false, `"k199999":0}`: false} {
		m.Payload.RoutingInfo = []byte(head + last)
		if err := m.Validate(); (err == nil) != ok {
			t.Errorf("200,000 keys and %s: error %v", last, err)
		}
	}
}
