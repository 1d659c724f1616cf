package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// shop is a world with two actions, and counts their calls.
func shop(calls map[string]int) *skeptest.World {
	return &skeptest.World{Actions: map[string]func(json.RawMessage) (any, error){
		"price_of": func(args json.RawMessage) (any, error) {
			calls["price_of"]++
			if !strings.Contains(string(args), "item") {
				return nil, skep.Errorf(skep.Invalid, "item is missing")
			}
			return map[string]int{"cents": 250}, nil
		},
		"order": func(json.RawMessage) (any, error) {
			calls["order"]++
			return nil, skep.Errorf(skep.Upstream, "the shop is closed")
		},
	}}
}

var peer = skep.Address{Type: skep.AddressAgent, Name: "boss"}

func ask(t *testing.T, w *skeptest.World, m skep.Message) (answer, skeptest.Outcome) {
	t.Helper()
	out := skeptest.Run(Tool{}, skeptest.Input{
		World: w, Message: m, CanComplete: true, CommTargets: []string{"boss"}, Tools: []string{"price_of", "order"}, Reads: []string{"price_of"},
	})
	if out.Err != nil {
		t.Fatalf("%s: the turn failed: %v", m.Body, out.Err)
	}
	var a answer
	if len(out.Mail) == 1 && out.Mail[0].Tool != "ignore_broadcast" {
		if err := json.Unmarshal([]byte(out.Mail[0].Body+out.Mail[0].Finish), &a); err != nil {
			t.Fatal(err)
		}
	}
	return a, out
}

// V-I29, I-034, I-035: the action that is named is run, and no other; whatever is wrong
// with a request is told in the answer.
func TestRequests(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"tool":"price_of","parameters":{"item":"tea"}}`:                                              `success {"cents":250}`,
		`{"tool_name":"price_of","parameters":{"item":"tea"},"callback_required":true}`:                `success {"cents":250}`,
		`{"message_type":"tool_request","payload":{"tool_name":"price_of","parameters":{"item":"x"}}}`: `success {"cents":250}`,
		`{"tool":"price_of"}`:                                    `error INVALID_FORMAT item is missing`,
		`{"tool":"order","parameters":{}}`:                       `error UPSTREAM the shop is closed`,
		`{"tool":"steal","parameters":{}}`:                       `error TOOL_NOT_FOUND`,
		`{"tool":"send_request","parameters":{"target":"boss"}}`: `error TOOL_NOT_FOUND`,
		`{"parameters":{}}`:                                      `error INVALID_FORMAT tool is missing`,
		`{"tool":"price_of","parameters":[1]}`:                   `error INVALID_FORMAT parameters must be an object`,
		`{"tool":"a","tool_name":"b"}`:                           `error INVALID_FORMAT tool and tool_name differ`,
		`{"tool":7}`:                                             `error INVALID_FORMAT the body must be`,
		`{"tool":"price_of","parameters":{"item":"x"}} and`:      `error INVALID_FORMAT the body must be`,
		`{"message_type":"task_request","payload":{}}`:           `error INVALID_FORMAT message_type is "task_request"`,
		`{"message_type":"tool_request"}`:                        `error INVALID_FORMAT payload must be`,
		`price_of tea`:                                           `error INVALID_FORMAT the body must be`,
		``:                                                       `error INVALID_FORMAT the body must be`,
		`null`:                                                   `error INVALID_FORMAT tool is missing`,
		`{"tool":"price_of","execution_context":{"permissions":null}}`: `error INVALID_FORMAT item is missing`,
	} {
		for _, from := range []skep.Address{peer, {Type: skep.AddressUser, Name: "ann"}} {
			a, _ := ask(t, shop(map[string]int{}), skep.Message{Sender: from, Body: body})
			got := a.Status + " " + string(a.Output)
			if a.Error != nil {
				got += a.Error.Code + " " + a.Error.Message
			}
			if !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s, want %s", body, got, want)
			}
		}
	}
}

// D-I15, I-073: permissions that a caller claims narrow what a call may do and never
// widen it; an action that writes is not run for a reader.
func TestPermissions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ tool, permissions, status string }{
		{"price_of", `["read"]`, "success"},
		{"price_of", `["read","write","admin"]`, "success"},
		{"price_of", `["write"]`, "permission_denied"},
		{"price_of", `[]`, "permission_denied"},
		{"order", `["read"]`, "permission_denied"},
		{"order", `["write"]`, "error"},
		{"steal", `["admin","read","write"]`, "error"},
	} {
		calls := map[string]int{}
		body := `{"tool_name":"` + test.tool + `","parameters":{"item":"tea"},"execution_context":{"permissions":` + test.permissions + `}}`
		a, _ := ask(t, shop(calls), skep.Message{Sender: peer, Body: body})
		if a.Status != test.status || (a.Status == "permission_denied") != (len(calls) == 0) && test.tool != "steal" {
			t.Errorf("%s with %s: %+v after %v", test.tool, test.permissions, a, calls)
		}
	}
}

// An MCP client's call brings the arguments alone; the action is in routing_info.
func TestCapability(t *testing.T) {
	t.Parallel()
	a, _ := ask(t, shop(map[string]int{}), skep.Message{
		Sender: peer, Body: `{"item":"tea"}`, Routing: json.RawMessage(`{"gateway":{"protocol":"mcp","capability":"price_of"}}`),
	})
	if a.Status != "success" || string(a.Output) != `{"cents":250}` {
		t.Errorf("answer %+v", a)
	}
}

// A request that is too long for a message lies in its part; one whose part is gone, or that has
// several, runs nothing.
func TestLongRequest(t *testing.T) {
	t.Parallel()
	w := shop(map[string]int{})
	address := w.PutBlob([]byte(`{"tool":"price_of","parameters":{"item":"` + strings.Repeat("tea", 100<<10) + `"}}`))
	part := `{"sha256":"` + address + `"}`
	for parts, want := range map[string]string{part: "success", part + "," + part: "error", `{"sha256":"` + strings.Repeat("0", 64) + `"}`: "error"} {
		a, _ := ask(t, w, skep.Message{Sender: peer, Routing: json.RawMessage(`{"gateway":{"parts":[` + parts + `]}}`)})
		if a.Status != want {
			t.Errorf("with the parts %s: %+v", parts, a)
		}
	}
}

// What an answer has of the caller and of the action is bounded: an answer that is too long for a
// message would fail the turn, and its caller would not learn that the action has run.
func TestBoundedAnswers(t *testing.T) {
	t.Parallel()
	w := &skeptest.World{Actions: map[string]func(json.RawMessage) (any, error){
		"price_of": func(json.RawMessage) (any, error) { return strings.Repeat("x", maxBody), nil },
		"order": func(json.RawMessage) (any, error) {
			return nil, skep.Errorf(skep.Upstream, "%s", strings.Repeat("\x01", maxBody))
		},
	}}
	for body, want := range map[string]string{
		`{"tool":"price_of"}`: `LIMIT price_of has run, and its output of 262146 bytes is longer than a message`,
		`{"tool":"order"}`:    "UPSTREAM \x01",
		`{"tool":"` + strings.Repeat(`\u0001`, 40<<10) + `"}`: `INVALID_FORMAT tool has 40960 bytes, at most 128`,
	} {
		a, out := ask(t, w, skep.Message{Sender: peer, Body: body})
		if a.Status != "error" || a.Error == nil || !strings.HasPrefix(a.Error.Code+" "+a.Error.Message, want) || len(out.Mail[0].Body) > maxBody {
			t.Errorf("%.40s: %.300v", body, a.Error)
		}
	}
}

// What is no request runs nothing, and a caller who wants no answer gets none.
func TestSilence(t *testing.T) {
	t.Parallel()
	body := `{"tool":"price_of","parameters":{"item":"tea"}}`
	for _, m := range []skep.Message{
		{Type: skep.TypeResponse, Sender: peer, Body: body},
		{Type: skep.TypeBroadcast, Sender: peer, Body: body},
		{Type: skep.TypeRequest, Sender: skep.Address{Type: skep.AddressSystem, Name: "hive"}, Body: body},
		{Type: skep.TypeInterrupt, Sender: peer, Subject: "cancel step", Body: `{"message_type":"workflow_cancel","payload":{"workflow_id":"w","message_id":"m"}}`},
	} {
		calls := map[string]int{}
		if _, out := ask(t, shop(calls), m); len(calls) > 0 || len(out.Mail) > 0 && out.Mail[0].Tool != "ignore_broadcast" {
			t.Errorf("%s of %s: %v, %+v", m.Type, m.Sender.Type, calls, out.Mail)
		}
	}
	calls := map[string]int{}
	_, out := ask(t, shop(calls), skep.Message{Sender: peer, Body: strings.Replace(body, "{", `{"callback_required":false,`, 1)})
	_, byUser := ask(t, shop(calls), skep.Message{Body: strings.Replace(body, "{", `{"callback_required":false,`, 1)})
	if calls["price_of"] != 2 || len(out.Mail) > 0 || len(byUser.Mail) != 1 {
		t.Errorf("callback_required false: %v, %+v", calls, out.Mail)
	}
}

// A turn that is called off answers nothing: the caller learns it from the host.
func TestCalledOff(t *testing.T) {
	t.Parallel()
	w := &skeptest.World{Actions: map[string]func(json.RawMessage) (any, error){
		"slow": func(json.RawMessage) (any, error) { return nil, skep.Cancelled },
	}}
	out := skeptest.Run(Tool{}, skeptest.Input{World: w, Message: skep.Message{Sender: peer, Body: `{"tool":"slow"}`}})
	if out.Err == nil || len(out.Mail) > 0 {
		t.Errorf("ended with %v, %+v", out.Err, out.Mail)
	}
}

// A request that is withdrawn while it waits behind others runs nothing, and is answered as
// cancelled once. Interrupts for requests that have run are forgotten after some time.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	calls := map[string]int{}
	w := shop(calls)
	var state json.RawMessage
	turn := func(m skep.Message) (a answer) {
		t.Helper()
		m.Sender = peer
		out := skeptest.Run(Tool{}, skeptest.Input{World: w, Message: m, State: state, CommTargets: []string{"boss"}, Tools: []string{"price_of"}})
		if out.Err != nil {
			t.Fatal(out.Err)
		}
		if state = out.State; len(out.Mail) == 1 {
			if err := json.Unmarshal([]byte(out.Mail[0].Body), &a); err != nil {
				t.Fatal(err)
			}
		}
		return a
	}
	const call = `{"tool":"price_of","parameters":{"item":"tea"}}`
	for n := range 3 * maxWithdrawn {
		turn(skep.Message{Type: skep.TypeInterrupt, ID: "i", Body: fmt.Sprintf(`{"message_type":"workflow_cancel","payload":{"message_id":"m%d"}}`, n)})
	}
	last := fmt.Sprint("m", 3*maxWithdrawn-1)
	for _, c := range []struct {
		id, status string
		calls      int
	}{{"m0", "success", 1}, {last, "error", 1}, {last, "success", 2}, {"", "success", 3}} {
		a := turn(skep.Message{Type: skep.TypeRequest, ID: c.id, Body: call})
		if a.Status != c.status || calls["price_of"] != c.calls || a.Error != nil && a.Error.Code != "CANCELLED" {
			t.Errorf("%q is answered with %+v, after %d calls", c.id, a, calls["price_of"])
		}
	}
	if len(state) > 1<<10 {
		t.Errorf("the state has %d bytes", len(state))
	}
}
