package grpcmessage

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"skep/spec/gateways/amp/amppb"
)

const whole = `{"protocol":"AIP/1.0","message":{"id":"m-1","type":"request","timestamp":"2025-01-27T10:00:00Z","source":{"agent_id":"agent-a","session_id":"s-1"},"destination":{"agent_id":"agent-b","capability":"summarization"},"headers":{"correlation_id":"c-1","priority":5,"timeout_ms":30000,"execution_time_ms":12,"routing_hints":{"x":1},"signature":{"algorithm":"HMAC-SHA256","value":"AA==","key_id":"k"}},"payload":{"capability":"summarization","parameters":{"text":"<é>","n":9007199254740993,"list":[null,true,false,1.5,"",{},[]]}}}}`

var reader = Reader{Protocol: "AMP/1.0", MaxText: 1 << 16, MaxDepth: 8}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestText (M-097, V-M35): raw_json is kept byte for byte, whatever members are set besides; without
// it the members are the text, and what the host writes has both.
func TestText(t *testing.T) {
	t.Parallel()
	spaced := strings.Replace(whole, `{"id"`, `{ "id"`, 1)
	for name, raw := range map[string][]byte{"alone": Raw([]byte(spaced)), "as protobuf has it": marshal(t, &amppb.Message{RawJson: []byte(spaced)})} {
		if text, members, err := reader.Text(raw); err != nil || members || string(text) != spaced {
			t.Errorf("%s: %s, %v, %v", name, text, members, err)
		}
	}
	m, err := Message([]byte(spaced))
	if err != nil {
		t.Fatal(err)
	}
	if text, members, err := reader.Text(marshal(t, m)); err != nil || !members || string(text) != spaced {
		t.Errorf("with members: %s, %v, %v", text, members, err)
	}
	m.RawJson = nil
	text, members, err := reader.Text(marshal(t, m))
	var got, want any
	if err != nil || !members || json.Unmarshal(text, &got) != nil || json.Unmarshal([]byte(whole), &want) != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the members (-want +got):\n%s", diff)
	}
	m.Protocol = ""
	if text, _, err := reader.Text(marshal(t, m)); err != nil || !bytes.HasPrefix(text, []byte(`{"protocol":"AMP/1.0",`)) {
		t.Errorf("without a protocol: %s, %v", text, err)
	}
}

// TestTextRefused (M-097): what has no text of JSON, or a text that is too large or too deep, is
// refused.
func TestTextRefused(t *testing.T) {
	t.Parallel()
	deep := structpb.NewBoolValue(true)
	for range 8 {
		deep = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{deep}})
	}
	with := func(v *structpb.Value) []byte {
		return marshal(t, &amppb.Message{Id: "m", Payload: &structpb.Struct{Fields: map[string]*structpb.Value{"x": v}}})
	}
	inPayload := func(value string) []byte { // of an entry without a key
		entry := "\x12" + string(rune(len(value))) + value
		s := "\x0a" + string(rune(len(entry))) + entry
		return []byte("\x4a" + string(rune(len(s))) + s)
	}
	many := make([]*structpb.Value, 1<<14)
	for i := range many {
		many[i] = structpb.NewNullValue()
	}
	for name, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"a text":             {Raw(make([]byte, reader.MaxText+1)), ErrTooLarge},
		"a member":           {with(structpb.NewStringValue(strings.Repeat("x", reader.MaxText))), ErrTooLarge},
		"escapes":            {with(structpb.NewStringValue(strings.Repeat("\x01", reader.MaxText/2))), ErrTooLarge},
		"many items":         {with(structpb.NewListValue(&structpb.ListValue{Values: many})), ErrTooLarge},
		"levels":             {with(deep), ErrDeep},
		"no number":          {with(structpb.NewNumberValue(0 / zero())), errMalformed},
		"no kind":            {with(&structpb.Value{}), errMalformed},
		"two kinds":          {inPayload("\x08\x00\x20\x01"), errMalformed},
		"another type":       {inPayload("\x28\x01"), errMalformed},
		"broken UTF-8":       {[]byte("\x1a\x01\xff"), errMalformed},
		"an id as a number":  {[]byte("\x18\x01"), errMalformed},
		"a group":            {[]byte("\x1b\x1c"), errMalformed},
		"cut off":            {[]byte("\x1a\x05ab"), errMalformed},
		"a payload cut off":  {[]byte("\x4a\x02\x0a\x05"), errMalformed},
		"an item, a number":  {[]byte("\x4a\x02\x08\x01"), errMalformed},
		"a list cut in item": {inPayload("\x32\x02\x0a\x05"), errMalformed},
	} {
		if text, _, err := reader.Text(c.raw); !errors.Is(err, c.want) {
			t.Errorf("%s: %.100q, %v, want %v", name, text, err, c.want)
		}
	}
}

func zero() float64 { return 0 }

// FuzzText: no bytes make the reader fail or write more than it may, and what it writes is what the
// library reads of them.
func FuzzText(f *testing.F) {
	m, err := Message([]byte(whole))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(marshal(f, m))
	m.RawJson = nil
	f.Add(marshal(f, m))
	f.Add(Raw([]byte(whole)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		text, _, err := reader.Text(raw)
		if err != nil {
			return
		}
		if len(text) > reader.MaxText {
			t.Fatalf("%d bytes of text", len(text))
		}
		var m amppb.Message
		if proto.Unmarshal(raw, &m) != nil {
			return // the library refuses unknown fields that are passed over here
		}
		if len(m.GetRawJson()) > 0 {
			if !bytes.Equal(text, m.GetRawJson()) {
				t.Fatalf("raw_json is %q, not %q", text, m.GetRawJson())
			}
			return
		}
		var got struct {
			Message struct{ Payload json.RawMessage }
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		want, err := protojson.Marshal(m.GetPayload())
		if m.Payload == nil || err != nil || bytes.Count(text, []byte(`"payload":`)) > 1 {
			return // two payloads have one reading in the library and none here
		}
		var a, b any
		if json.Unmarshal(got.Message.Payload, &a) != nil || json.Unmarshal(want, &b) != nil || !cmp.Equal(a, b) {
			t.Fatalf("the payload is %s, not %s", got.Message.Payload, want)
		}
	})
}
