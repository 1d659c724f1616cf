package abi_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"skep/abi"
)

func TestReadRequest(t *testing.T) {
	t.Parallel()
	yes, half := "yes", 0.5
	for _, c := range []struct {
		raw  string
		want any
	}{
		{` {"key" : "a\u00fc", "value":"yes"} `, abi.KVPutRequest{Key: "aü", Value: &yes}},
		{`{"key":"a","value":null,"scope":null}`, abi.KVPutRequest{Key: "a"}},
		{``, abi.KVListRequest{}},
		{`{}`, abi.KVListRequest{}},
		{`{"after":1,"limit":2}`, abi.HistoryRequest{After: 1, Limit: 2}},
		{`{"after":"1m","body":"x"}`, abi.TimerRequest{After: abi.Span(time.Minute), Body: "x"}},
		{`{"after":250,"body":"x"}`, abi.TimerRequest{After: abi.Span(250 * time.Millisecond), Body: "x"}},
		{`{"progress":{"text":"x","fraction":0.5}}`, abi.EmitRequest{Progress: &abi.Progress{Text: "x", Fraction: &half}}},
		{`{"method":"PUT","url":"u","headers":{"a":"1","A":"2"},"body_base64":"AP8="}`,
			abi.FetchRequest{Method: "PUT", URL: "u", Headers: map[string]string{"a": "1", "A": "2"}, BodyBase64: []byte{0, 255}}},
		{`{"tool":"help","args":{"a":1}}`, abi.MailRequest{Tool: "help", Args: json.RawMessage(`{"a":1}`)}},
		{`{"level":"info","message":"x","fields":{"n":1}}`, abi.LogRequest{Level: "info", Message: "x", Fields: map[string]any{"n": 1.0}}},
	} {
		got := reflect.New(reflect.TypeOf(c.want))
		if err := abi.ReadRequest([]byte(c.raw), got.Interface()); err != nil || !reflect.DeepEqual(got.Elem().Interface(), c.want) {
			t.Errorf("%s: %+v, %v, want %+v", c.raw, got.Elem(), err, c.want)
		}
	}
}

// An error names the wrong member and what it must be, and nothing of the host's
// code.
func TestReadRequestRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		into      any
		raw, want string
	}{
		{&abi.KVPutRequest{}, `{"key":"a","value":7}`, `value must be a text, not the number 7`},
		{&abi.KVPutRequest{}, `{"key":["a"],"value":""}`, `key must be a text, not a list`},
		{&abi.KVPutRequest{}, `{"Key":"a","value":""}`, `Key must be written key`},
		{&abi.KVPutRequest{}, `{"key":"a","value":"1","value":"2"}`, `value is there twice`},
		{&abi.KVGetRequest{}, `{"name":"a"}`, `name is no member; the members are key, scope`},
		{&abi.KVGetRequest{}, `{"\u0000":1}`, `"\x00" is no member; the members are key, scope`},
		{&abi.KVGetRequest{}, `{"key":"a","b":1,"a":null}`, `a is no member; the members are key, scope`},
		{&abi.KVGetRequest{}, `"a"`, `must be an object, not a text`},
		{&abi.KVGetRequest{}, `{"key":"a"} {}`, `not JSON: invalid character '{' after top-level value`},
		{&abi.KVGetRequest{}, "{\"key\":\"\xff\"}", `not UTF-8`},
		{&abi.KVGetRequest{}, `{"key":`, `not JSON: unexpected end of JSON input`},
		{&abi.KVListRequest{}, `{"limit":1.5}`, `limit must be a whole number, not the number 1.5`},
		{&abi.TimerRequest{}, `{"after":"soon"}`, `after must be a time as in "90s" or a number of milliseconds, not a text`},
		{&abi.TimerRequest{}, `{"after":true}`, `after must be a time as in "90s" or a number of milliseconds, not true`},
		{&abi.FetchRequest{}, `{"headers":{"accept":1}}`, `headers.accept must be a text, not the number 1`},
		{&abi.FetchRequest{}, `{"headers":{"a b":1}}`, `headers."a b" must be a text, not the number 1`},
		{&abi.FetchRequest{}, `{"headers":{"a":"1","a":"2"}}`, `headers.a is there twice`},
		{&abi.FetchRequest{}, `{"headers":[]}`, `headers must be an object, not a list`},
		{&abi.FetchRequest{}, `{"body_base64":"AP8"}`, `body_base64 must be bytes as base64 with padding, not a text`},
		{&abi.BlobPutRequest{}, `{"data":[1,2]}`, `data must be bytes as base64 with padding, not a list`},
		{&abi.MetricRequest{}, `{"value":"1"}`, `value must be a number, not a text`},
		{&abi.SpanRequest{}, `{"attributes":{"a":1}}`, `attributes.a must be a text, not the number 1`},
		{&abi.EmitRequest{}, `{"progress":{"fraction":"half"}}`, `progress.fraction must be a number, not a text`},
		{&abi.EmitRequest{}, `{"progress":{"done":1}}`, `progress.done is no member; the members are text, fraction`},
		{&abi.EmitRequest{}, `{"progress":1}`, `progress must be an object, not the number 1`},
		{&abi.ChatRequest{}, `{"messages":{}}`, `messages must be a list, not an object`},
		{&abi.ChatRequest{}, `{"messages":[{"role":"user","content":"a"},"b"]}`, `messages[1] must be an object, not a text`},
		{&abi.ChatRequest{}, `{"messages":[null]}`, `messages[0] must be an object, not null`},
		{&abi.ChatRequest{}, `{"messages":[{"Role":"user"}]}`, `messages[0].Role must be written role`},
		{&abi.ChatRequest{}, `{"messages":[{"role":"a","role":"b"}]}`, `messages[0].role is there twice`},
		{&abi.ChatRequest{}, `{"messages":[{"name":"a"}]}`, `messages[0].name is no member; the members are role, content, tool_calls, tool_call_id, error, carry`},
		{&abi.ChatRequest{}, `{"messages":[{"tool_calls":[{"id":7}]}]}`, `messages[0].tool_calls[0].id must be a text, not the number 7`},
		{&abi.ChatRequest{}, `{"messages":[{"error":"yes"}]}`, `messages[0].error must be true or false, not a text`},
		{&abi.ChatRequest{}, `{"temperature":"hot"}`, `temperature must be a number, not a text`},
		{&abi.ChatRequest{}, `{"max_tokens":1.5}`, `max_tokens must be a whole number, not the number 1.5`},
		{&abi.LogRequest{}, `{"message":"x","fields":"y"}`, `fields must be an object, not a text`},
	} {
		if err := abi.ReadRequest([]byte(c.raw), c.into); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.raw, err, c.want)
		}
	}
}

func FuzzReadRequest(f *testing.F) {
	for _, seed := range []string{`{"key":"a","value":"b"}`, `{"method":"GET","headers":{"a":"b"}}`, `{"progress":{"fraction":1e400}}`, `{"after":1e300}`, `{"data":"dGVhCg=="}`,
		`{"name":"a","value":1,"labels":{"a":"b"}}`, `{"id":1,"attributes":{"a":"b"},"error":"x"}`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, into := range []any{&abi.KVCasRequest{}, &abi.FetchRequest{}, &abi.EmitRequest{}, &abi.TimerRequest{}, &abi.LogRequest{}, &abi.ChatRequest{},
			&abi.BlobPutRequest{}, &abi.MetricRequest{}, &abi.SpanRequest{}} {
			if err := abi.ReadRequest(raw, into); err != nil && strings.Contains(err.Error(), "Go ") {
				t.Errorf("%q: %v tells of Go", raw, err)
			}
		}
	})
}
