package model_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn/egress"
	"skep/host/internal/turn/model"
	"skep/host/internal/turn/model/modeltest"
)

// This file tests paths that the servers of modeltest cannot take, over the transport of a
// host. The other paths are in suite_test, failure_test, retry_test and answer_test, for
// both providers, streamed and not.

// behaving is a world with a given server.
func behaving(t *testing.T, provider string, serve http.HandlerFunc) (*world, *atomic.Int64) {
	t.Helper()
	w := newWorld(t, provider, nil)
	asked := &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		serve(rw, r)
	}))
	t.Cleanup(s.Close)
	w.spec.BaseURL = s.URL
	w.guard(t)
	return w, asked
}

// guard makes the world use the transport of a host.
func (w *world) guard(t *testing.T) {
	t.Helper()
	grant, err := egress.ParseGrant(w.spec.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	client := egress.New(egress.Options{KeepAlive: egress.KeepAlive{MaxIdlePerHost: 2}})
	t.Cleanup(client.Close)
	w.opt.Transport = client.Transport(egress.Policy{Table: "[models.default]", Grants: []egress.Grant{grant}, AllowPrivate: true})
}

// first is the beginning of a good answer, with one piece.
func first(provider string) string {
	if provider == model.OpenAI {
		return "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one \"}}]}\n\n"
	}
	return "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"one \"}}\n\n"
}

func say(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

// cutOff resets the connection.
func cutOff(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

func stream(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-stream") }

// endless writes until the connection breaks.
func endless(w http.ResponseWriter, r *http.Request, text string) {
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// TestPaths: servers that fail in the middle of an answer. An attempt is repeated only
// while no piece was emitted, and the error shows whether the provider may charge.
func TestPaths(t *testing.T) {
	bomb := packedZeros(t)
	for _, c := range []struct {
		name  string
		serve func(w http.ResponseWriter, r *http.Request, provider string)
		kind  model.Kind
		text  string
		// begun is the wanted Billable of the error; handed, that a stream emits pieces;
		// again, that an attempt without pieces is repeated.
		begun, handed, again bool
	}{
		{"reset before the answer", func(w http.ResponseWriter, _ *http.Request, _ string) { cutOff(w) },
			model.Unavailable, "the connection broke", false, false, true},
		{"reset before the first event", func(w http.ResponseWriter, _ *http.Request, _ string) {
			stream(w)
			say(w, ": soon\n\n")
			cutOff(w)
		}, model.Unavailable, "the connection broke", false, false, true},
		{"reset after a piece", func(w http.ResponseWriter, _ *http.Request, provider string) {
			stream(w)
			say(w, first(provider))
			cutOff(w)
		}, model.Unavailable, "the connection broke", true, true, true},
		{"an end after a piece", func(w http.ResponseWriter, _ *http.Request, provider string) {
			stream(w)
			say(w, first(provider))
		}, model.Unavailable, "broke off", true, true, true},
		{"an end within an event", func(w http.ResponseWriter, _ *http.Request, provider string) {
			stream(w)
			say(w, first(provider)+"data: {\"choices\":[{\"index\":0,")
		}, "", "", true, true, true},
		{"less than it has promised", func(w http.ResponseWriter, _ *http.Request, provider string) {
			stream(w)
			w.Header().Set("Content-Length", "10000")
			say(w, first(provider))
		}, model.Unavailable, "the connection broke", true, true, true},
		{"no JSON after a piece", func(w http.ResponseWriter, _ *http.Request, provider string) {
			stream(w)
			say(w, first(provider)+"event: content_block_delta\ndata: {\"type\":\n\n")
		}, model.Malformed, "", true, true, false},
		{"an empty answer", func(w http.ResponseWriter, _ *http.Request, _ string) { stream(w) }, model.Unavailable, "broke off", false, false, true},
		{"a page", func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Type", "text/html")
			say(w, "<html><body>Welcome</body></html>")
		}, model.Malformed, "base_url may lead elsewhere than to the provider", true, false, false},
		{"a whole answer to a stream", func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Type", "application/json")
			say(w, `{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}`)
		}, model.Malformed, "is no stream of events", true, false, false},
		{"no HTTP", func(w http.ResponseWriter, _ *http.Request, _ string) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "220 mail.test ESMTP\r\n")
				_ = conn.Close()
			}
		}, model.Unavailable, "the connection broke", false, false, true},
		{"a flood of headers", func(w http.ResponseWriter, _ *http.Request, _ string) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			for err == nil {
				_, err = io.WriteString(conn, "X-Flood: "+strings.Repeat("x", 1000)+"\r\n")
			}
		}, model.Unavailable, "the connection broke", false, false, true},
		{"a bomb", func(w http.ResponseWriter, _ *http.Request, _ string) {
			stream(w)
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		}, model.Unavailable, "", false, false, true},
		{"a line without end", func(w http.ResponseWriter, r *http.Request, provider string) {
			stream(w)
			say(w, first(provider)+"data: ")
			endless(w, r, strings.Repeat("x", 1<<16))
		}, "", "", true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, provider string, streamed bool) {
				if provider == model.OpenAI && !streamed {
					return // its whole answers are no streams; see TestPathsWhole
				}
				w, asked := behaving(t, provider, func(w http.ResponseWriter, r *http.Request) { c.serve(w, r, provider) })
				w.spec.Retries = 1
				_, pieces, err := ask(t, w.open(t), question, streamed)
				var e *model.Error
				if !errors.As(err, &e) {
					t.Fatal(err)
				}
				failed(t, err, cmp.Or(c.kind, e.Kind), c.text)
				if c.kind == "" && e.Kind != model.Unavailable && e.Kind != model.Malformed && e.Kind != model.TooLarge {
					t.Errorf("got %v", err)
				}
				want := int64(1)
				if pieces == 0 && c.again && e.Kind == model.Unavailable {
					want = 2
				}
				if got := asked.Load(); got != want || (pieces > 0) != (c.handed && streamed) || e.Billable != c.begun {
					t.Errorf("%d tries, %d pieces, begun %v: %v", got, pieces, e.Billable, err)
				}
			})
		})
	}
}

// packedZeros returns 64 MiB of zeros in gzip.
func packedZeros(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	zeros := make([]byte, 1<<20)
	for i := 0; err == nil && i < 64; i++ {
		_, err = z.Write(zeros)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPathsWhole is the same for an answer that is not streamed.
func TestPathsWhole(t *testing.T) {
	bomb := packedZeros(t)
	for _, c := range []struct {
		name  string
		serve http.HandlerFunc
		kind  model.Kind
		text  string
		begun bool
	}{
		{"reset before the answer", func(w http.ResponseWriter, _ *http.Request) { cutOff(w) }, model.Unavailable, "the connection broke", false},
		{"reset within the answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			say(w, `{"choices":`)
			cutOff(w)
		}, model.Unavailable, "the connection broke", true},
		{"less than it has promised", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "10000")
			say(w, `{"choices":`)
		}, model.Unavailable, "the connection broke", true},
		{"an empty answer", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/json") }, model.Malformed, "", true},
		{"a stream", func(w http.ResponseWriter, _ *http.Request) {
			stream(w)
			say(w, first(model.OpenAI))
		}, model.Malformed, "base_url may lead elsewhere", false},
		{"a bomb", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		}, model.Malformed, "", true},
		{"no end", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			say(w, `{"id":"`)
			endless(w, r, strings.Repeat("x", 1<<16))
		}, model.TooLarge, "more than 16777216 bytes", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := behaving(t, model.OpenAI, c.serve)
			_, _, err := ask(t, w.open(t), question, false)
			if e := failed(t, err, c.kind, c.text); e.Billable != c.begun {
				t.Errorf("begun %v: %v", e.Billable, err)
			}
		})
	}
}

// TestPings: a server that only sends keep-alives is given up with the call's timeout. It
// had the request, so it may charge.
func TestPings(t *testing.T) {
	each(t, func(t *testing.T, provider string, streamed bool) {
		w, _ := behaving(t, provider, func(w http.ResponseWriter, r *http.Request) {
			ping := "event: ping\ndata: {\"type\": \"ping\"}\n\n"
			switch {
			case provider == model.OpenAI && !streamed:
				w.Header().Set("Content-Type", "application/json")
				ping = " "
			case provider == model.OpenAI:
				ping = ": ping\n\n"
				fallthrough
			default:
				stream(w)
			}
			beat := time.NewTicker(time.Millisecond)
			defer beat.Stop()
			for r.Context().Err() == nil {
				say(w, ping)
				<-beat.C
			}
		})
		w.spec.Timeout = 300 * time.Millisecond
		_, pieces, err := ask(t, w.open(t), question, streamed)
		if e := failed(t, err, model.Unavailable, "no whole answer within 300ms; raise timeout"); !e.Billable || pieces != 0 {
			t.Errorf("begun %v, %d pieces", e.Billable, pieces)
		}
	})
}

// TestSilentServer: a server that takes the request and never answers may charge for it;
// an unreachable one does not.
func TestSilentServer(t *testing.T) {
	each(t, func(t *testing.T, provider string, streamed bool) {
		w, _ := behaving(t, provider, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		w.spec.Timeout = 100 * time.Millisecond
		_, _, err := ask(t, w.open(t), question, streamed)
		if e := failed(t, err, model.Unavailable, "no whole answer within"); !e.Billable {
			t.Error("a server that had the request costs nothing")
		}
		w.spec.BaseURL = "http://127.0.0.1:1"
		w.guard(t)
		_, _, err = ask(t, w.open(t), question, streamed)
		if e := failed(t, err, model.Unavailable, "cannot be reached"); e.Billable {
			t.Error("a server that is not there costs something")
		}
	})
}

// TestRefusalsCostNothing: an error status is not billable.
func TestRefusalsCostNothing(t *testing.T) {
	for _, status := range []int{301, 400, 401, 403, 404, 408, 409, 413, 429, 500, 502, 503, 504, 529} {
		each(t, func(t *testing.T, provider string, streamed bool) {
			w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Status: status, Header: map[string]string{"Location": "/"}}))
			_, _, err := ask(t, w.open(t), question, streamed)
			var e *model.Error
			if !errors.As(err, &e) || e.Status != status || e.Billable {
				t.Errorf("%d: %+v", status, err)
			}
		})
	}
}

// TestErrorBeforeTheFirstPiece: an error at the start of a stream is handled like an error
// status, and retried.
func TestErrorBeforeTheFirstPiece(t *testing.T) {
	for _, provider := range []string{model.OpenAI, model.Anthropic} {
		w := newWorld(t, provider, modeltest.InOrder(
			modeltest.Reply{Fail: &modeltest.Failure{Type: "overloaded_error", Message: "Overloaded"}}, modeltest.Reply{Text: []string{"Yes."}},
		))
		w.spec.Retries = 1
		if resp, _, err := ask(t, w.open(t), question, true); err != nil || resp.Text != "Yes." || len(w.waited) != 1 {
			t.Errorf("%s: %q, %v after %v", provider, resp.Text, err, w.waited)
		}
	}
}

// TestKeyAcrossTheCut: a provider's text that is cut in an error contains no part of the
// key, wherever the key is.
func TestKeyAcrossTheCut(t *testing.T) {
	for _, status := range []int{401, 404} {
		each(t, func(t *testing.T, provider string, streamed bool) {
			for n := 430; n < 505; n += 5 {
				f := modeltest.Failure{Type: "x", Message: strings.Repeat("x", n) + key + strings.Repeat("y", 600)}
				w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Status: status, Failure: f}, modeltest.Reply{Fail: &f}))
				for range 2 {
					if _, _, err := ask(t, w.open(t), question, streamed); strings.Contains(fmt.Sprint(err), key[:6]) {
						t.Fatalf("%d, after %d bytes: %v", status, n, err)
					}
				}
			}
		})
	}
}

// TestStrayCalls: deviations of Anthropic-compatible servers: calls without id or name, an
// unknown finish reason, text that was filtered half way.
func TestStrayCalls(t *testing.T) {
	event := func(kind, rest string) string {
		return fmt.Sprintf("event: %[1]s\ndata: {\"type\":%[1]q%[2]s}\n\n", kind, rest)
	}
	call := func(id, name string) string {
		return event("content_block_start", fmt.Sprintf(`,"index":0,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, name))
	}
	end := func(reason string) string {
		return event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q}`, reason)) + event("message_stop", "")
	}
	text := event("content_block_start", `,"index":0,"content_block":{"type":"text","text":"Half"}`)
	for _, c := range []struct {
		name, body string
		want       abi.ChatResponse
		text       string
	}{
		{"no id", call("", "look") + end("tool_use"), abi.ChatResponse{ToolCalls: []abi.ChatCall{{ID: "call_2_0", Name: "look", Arguments: "{}"}}, Finish: abi.FinishToolCalls}, ""},
		{"no name", call("a", "") + end("tool_use"), abi.ChatResponse{}, "a tool call without a name"},
		{"a long name", call("a", strings.Repeat("n", 600)) + end("tool_use"), abi.ChatResponse{}, "whose name is longer than 512 bytes"},
		{"a long id", call(strings.Repeat("i", 600), "n") + end("tool_use"), abi.ChatResponse{}, "whose id is longer than 512 bytes"},
		{"an unknown reason", text + end("compaction"), abi.ChatResponse{Text: "Half", Finish: abi.FinishStop}, ""},
		{"a stop sequence", text + end("stop_sequence"), abi.ChatResponse{Text: "Half", Finish: abi.FinishStop}, ""},
		{"filtered half way", text + end("refusal"), abi.ChatResponse{Text: "Half", Finish: abi.FinishFiltered}, ""},
		{"a full context", text + end("model_context_window_exceeded"), abi.ChatResponse{Text: "Half", Finish: abi.FinishLength}, ""},
		{"unknown events and blocks", event("notice", "") + event("content_block_start", `,"index":7,"content_block":{"type":"later"}`) +
			event("content_block_delta", `,"index":7,"delta":{"type":"later_delta"}`) + text + end("end_turn"), abi.ChatResponse{Text: "Half", Finish: abi.FinishStop}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, model.Anthropic, modeltest.InOrder(modeltest.Reply{Body: c.body, Type: "text/event-stream"}))
			resp, _, err := ask(t, w.open(t), question, true)
			if c.text != "" {
				failed(t, err, model.Malformed, c.text)
				return
			}
			if err != nil || resp.Text != c.want.Text || resp.Finish != c.want.Finish || fmt.Sprint(resp.ToolCalls) != fmt.Sprint(append([]abi.ChatCall{}, c.want.ToolCalls...)) {
				t.Errorf("got %+v, %v", resp, err)
			}
		})
	}
}

// TestStrayChoices is the same for OpenAI-compatible servers.
func TestStrayChoices(t *testing.T) {
	chunk := func(delta, reason string) string {
		return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{%s},\"finish_reason\":%s}]}\n\n", delta, reason)
	}
	half := chunk(`"content":"Half"`, "null")
	for _, c := range []struct{ name, body, finish, text string }{
		{"an unknown reason", half + chunk("", `"eos_token"`), abi.FinishStop, ""},
		{"filtered half way", half + chunk("", `"content_filter"`), abi.FinishFiltered, ""},
		{"cut", half + chunk("", `"length"`), abi.FinishLength, ""},
		{"an old reason", half + chunk("", `"function_call"`), abi.FinishToolCalls, ""},
		{"nothing after the reason", half + chunk("", `"stop"`), abi.FinishStop, ""},
		{"a long name that comes later", chunk(`"tool_calls":[{"index":0,"id":"a","function":{}}]`, "null") +
			chunk(`"tool_calls":[{"index":0,"function":{"name":"`+strings.Repeat("n", 600)+`"}}]`, `"tool_calls"`), "", "whose name is longer than 512 bytes"},
		{"a call without a name", chunk(`"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]`, `"tool_calls"`), "", "a tool call without a name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, model.OpenAI, modeltest.InOrder(modeltest.Reply{Body: c.body, Type: "text/event-stream"}))
			resp, _, err := ask(t, w.open(t), question, true)
			if c.text != "" {
				failed(t, err, model.Malformed, c.text)
			} else if err != nil || resp.Text != "Half" || resp.Finish != c.finish {
				t.Errorf("got %+v, %v", resp, err)
			}
		})
	}
}
