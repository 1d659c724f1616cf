package mail_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/spec/mail"
)

const (
	uuid1 = "8d2f6b0e-6f0e-4a39-9f5e-0d2c6a1c7b11"
	uuid2 = "0f3a7a34-9d0e-4f0c-9a55-6a6a0a3b8f21"
	noon  = "2026-03-01T12:00:00.000000+00:00"
)

func request() mail.Message {
	return mail.Message{ID: uuid1, Timestamp: noon, Type: mail.Request, Payload: mail.Payload{
		TaskID:     "t1",
		ID:         uuid2,
		Sender:     mail.Address{Type: mail.Agent, Name: "chief"},
		Recipients: []mail.Address{{Type: mail.Agent, Name: "tanks"}},
		Subject:    "Level",
		Body:       "How full?",
	}}
}

func broadcast() mail.Message {
	m := request()
	m.Type = mail.Broadcast
	m.Payload.Recipients = append(m.Payload.Recipients, mail.Address{Type: mail.Agent, Name: "pumps"})
	return m
}

func wrapper() mail.Interswarm {
	return mail.Interswarm{
		MessageID: "m1", SourceSwarm: "harbor", TargetSwarm: "depot", Timestamp: noon,
		Type: mail.Request, Payload: request().Payload, TaskOwner: "user:u@harbor",
	}
}

// TestAppendJSON shows the wire form byte for byte (R-001, R-005, R-007, S-05).
func TestAppendJSON(t *testing.T) {
	t.Parallel()
	full := broadcast()
	full.Payload.Body = "\"\\/\b\f\n\r\t\x00\x1f\x7f<é🐋\u2028"
	full.Payload.SenderSwarm = "harbor"
	full.Payload.RecipientSwarms = []string{"harbor", ""}
	full.Payload.RoutingInfo = json.RawMessage("{ \"a b\":\n[1, \" \\\" \"] }")
	single := request()
	single.Payload.RecipientSwarms = []string{"depot"}
	blank := request()
	blank.Payload.RecipientSwarms = []string{""}
	const head = `{"id":"` + uuid1 + `","timestamp":"` + noon + `","msg_type":`
	const sender = `,"sender":{"address_type":"agent","address":"chief"}`
	const plain = head + `"request","message":{"task_id":"t1","request_id":"` + uuid2 + `"` + sender +
		`,"recipient":{"address_type":"agent","address":"tanks"},"subject":"Level","body":"How full?"`
	for _, tc := range []struct {
		name string
		in   mail.Message
		want string
	}{
		{"no optional field", request(), plain + `}}`},
		{"empty recipient swarm", blank, plain + `}}`},
		{"recipient swarm", single, plain + `,"recipient_swarm":"depot"}}`},
		{"everything", full, head + `"broadcast","message":{"task_id":"t1","broadcast_id":"` + uuid2 + `"` + sender +
			`,"recipients":[{"address_type":"agent","address":"tanks"},{"address_type":"agent","address":"pumps"}]` +
			`,"subject":"Level","body":"\"\\/\b\f\n\r\t\u0000\u001f` + "\x7f<é🐋\u2028" + `"` +
			`,"sender_swarm":"harbor","recipient_swarms":["harbor",""],"routing_info":{"a b":[1," \" "]}}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.in.AppendJSON([]byte("x"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("x"+tc.want, string(got)); diff != "" {
				t.Errorf("mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInterswarmAppendJSON(t *testing.T) {
	t.Parallel()
	got, err := wrapper().AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	// auth_token and metadata are always written; R-034: so are contributors.
	for _, want := range []string{`"auth_token":""`, `"metadata":{}`, `"task_contributors":[]`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	w := wrapper()
	w.Metadata = json.RawMessage(`{"a":1}`)
	w.TaskContributors = []string{"user:u@harbor"}
	sameAgain(t, w, mail.ParseInterswarm)
}

// TestCannotWriteInvalid: whatever the schema would refuse is not written.
func TestCannotWriteInvalid(t *testing.T) {
	t.Parallel()
	edit := func(f func(*mail.Message)) mail.Message { m := request(); f(&m); return m }
	many := func(f func(*mail.Message)) mail.Message { m := broadcast(); f(&m); return m }
	for _, tc := range []struct {
		path string
		in   mail.Message
	}{
		{"id", edit(func(m *mail.Message) { m.ID = "1" })},
		{"timestamp", edit(func(m *mail.Message) { m.Timestamp = "" })},
		{"msg_type", edit(func(m *mail.Message) { m.Type = "buffered" })},
		{"message.task_id", edit(func(m *mail.Message) { m.Payload.TaskID = "" })},
		{"message.task_id", edit(func(m *mail.Message) { m.Payload.TaskID = "\xff" })},
		{"message.request_id", edit(func(m *mail.Message) { m.Payload.ID = "1" })},
		{"message.request_id", edit(func(m *mail.Message) { m.Type = mail.Response; m.Payload.ID = "\xff" })},
		{"message.sender.address_type", edit(func(m *mail.Message) { m.Payload.Sender.Type = "swarm" })},
		{"message.sender.address", edit(func(m *mail.Message) { m.Payload.Sender.Name = "" })},
		{"message.sender.address", edit(func(m *mail.Message) { m.Payload.Sender.Name = "\xff" })},
		{"message.recipient", edit(func(m *mail.Message) { m.Payload.Recipients = nil })},
		{"message.recipient", edit(func(m *mail.Message) { m.Payload.Recipients = broadcast().Payload.Recipients })},
		{"message.recipient.address", edit(func(m *mail.Message) {
			m.Payload.Recipients = make([]mail.Address, 1)
			m.Payload.Recipients[0].Type = mail.Agent
		})},
		{"message.subject", edit(func(m *mail.Message) { m.Payload.Subject = "\xc3" })},
		{"message.body", edit(func(m *mail.Message) { m.Payload.Body = "\xed\xa0\x80" })},
		{"message.sender_swarm", edit(func(m *mail.Message) { m.Payload.SenderSwarm = "\xff" })},
		{"message.recipient_swarm", edit(func(m *mail.Message) { m.Payload.RecipientSwarms = []string{"a", "b"} })},
		{"message.routing_info", edit(func(m *mail.Message) { m.Payload.RoutingInfo = json.RawMessage(`null`) })},
		{"message.routing_info", edit(func(m *mail.Message) { m.Payload.RoutingInfo = json.RawMessage(`{}{}`) })},
		{"message.routing_info", edit(func(m *mail.Message) { m.Payload.RoutingInfo = json.RawMessage(`{"a":"` + "\xff" + `"}`) })},
		{"message.routing_info.a", edit(func(m *mail.Message) { m.Payload.RoutingInfo = json.RawMessage(`{"a":1,"a":2}`) })},
		{"message.recipients", many(func(m *mail.Message) { m.Payload.Recipients = nil })},
		{"message.recipients[1].address", many(func(m *mail.Message) { m.Payload.Recipients[1].Name = "\xff" })},
		{"message.recipient_swarms[0]", many(func(m *mail.Message) { m.Payload.RecipientSwarms = []string{"\xff"} })},
	} {
		got, err := tc.in.AppendJSON([]byte("x"))
		var fe *mail.FieldError
		if !errors.As(err, &fe) || fe.Path != tc.path || string(got) != "x" {
			t.Errorf("AppendJSON = %q, %v; want a fault at %s", got, err, tc.path)
		}
	}
}

func TestCannotWriteInvalidInterswarm(t *testing.T) {
	t.Parallel()
	for path, f := range map[string]func(*mail.Interswarm){
		"message_id":           func(w *mail.Interswarm) { w.MessageID = "" },
		"source_swarm":         func(w *mail.Interswarm) { w.SourceSwarm = "" },
		"target_swarm":         func(w *mail.Interswarm) { w.TargetSwarm = "\xff" },
		"timestamp":            func(w *mail.Interswarm) { w.Timestamp = "today" },
		"msg_type":             func(w *mail.Interswarm) { w.Type = mail.BroadcastComplete },
		"task_owner":           func(w *mail.Interswarm) { w.TaskOwner = "" },
		"task_contributors[0]": func(w *mail.Interswarm) { w.TaskContributors = []string{"\xff"} },
		"auth_token":           func(w *mail.Interswarm) { w.AuthToken = "\xff" },
		"metadata":             func(w *mail.Interswarm) { w.Metadata = json.RawMessage(`[]`) },
		"payload.task_id":      func(w *mail.Interswarm) { w.Payload.TaskID = "" },
		"payload.body":         func(w *mail.Interswarm) { w.Payload.Body = "\xff" },
	} {
		w := wrapper()
		f(&w)
		got, err := w.AppendJSON(nil)
		var fe *mail.FieldError
		if !errors.As(err, &fe) || fe.Path != path || got != nil {
			t.Errorf("AppendJSON = %q, %v; want a fault at %s", got, err, path)
		}
	}
}

// TestStdJSON: the types work as fields of any struct.
func TestStdJSON(t *testing.T) {
	t.Parallel()
	type box struct {
		M mail.Message
		W mail.Interswarm
	}
	in := box{request(), wrapper()}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out box
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	if _, err := json.Marshal(box{}); err == nil {
		t.Error("an empty message was written")
	}
	if err := json.Unmarshal([]byte(`{"M":{}}`), &out); err == nil {
		t.Error("an empty message was read")
	}
}

func TestMessageAccessors(t *testing.T) {
	t.Parallel()
	m := request()
	if got, want := m.Time(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("Time() = %v, want %v", got, want)
	}
	if got := m.Payload.Recipient(); got.Name != "tanks" {
		t.Errorf("Recipient() = %v", got)
	}
	if got := new(mail.Payload).Recipient(); got != (mail.Address{}) {
		t.Errorf("Recipient() of nothing = %v", got)
	}
	if err := m.Payload.Sender.Validate(); err != nil {
		t.Errorf("Validate() = %v", err)
	}
	if err := (mail.Address{Type: mail.User, Name: "\xff"}).Validate(); err == nil {
		t.Error("an address in broken UTF-8 is valid")
	}
}

// TestTier covers S-03, X-20 and X-21.
func TestTier(t *testing.T) {
	t.Parallel()
	types := []mail.Type{mail.Request, mail.Response, mail.Broadcast, mail.Interrupt, mail.BroadcastComplete}
	for sender, want := range map[mail.AddressType][]int{
		mail.System: {1, 1, 1, 1, 1},
		mail.User:   {2, 2, 2, 2, 2},
		mail.Admin:  {2, 2, 2, 2, 2},
		mail.Agent:  {5, 5, 4, 3, 3},
	} {
		var got []int
		for _, typ := range types {
			m := request()
			m.Type, m.Payload.Sender.Type = typ, sender
			got = append(got, mail.Tier(m))
		}
		if !slices.Equal(got, want) {
			t.Errorf("tiers of %s for %v = %v, want %v", sender, types, got, want)
		}
	}
}
