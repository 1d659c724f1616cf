package model_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn/model"
	"skep/host/internal/turn/model/modeltest"
)

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int
		failure modeltest.Failure
		kind    model.Kind
		text    string
		cause   string
	}{
		{"rate limit", 429, modeltest.Failure{Type: "rate_limit_error", Message: "slow down"}, model.RateLimited, "slow down (status 429)", "status 429, rate limited"},
		{"quota", 429, modeltest.Failure{Type: "insufficient_quota", Code: "insufficient_quota", Message: "pay"}, model.Auth, "used up: pay", "status 429, the account with the provider is used up"},
		{"overload", 529, modeltest.Failure{Type: "overloaded_error", Message: "Overloaded"}, model.Overloaded, "too much to do", "status 529, overloaded"},
		{"unavailable", 503, modeltest.Failure{}, model.Overloaded, "too much to do", "status 503, overloaded"},
		{"broken", 500, modeltest.Failure{Type: "api_error", Message: "Internal"}, model.Unavailable, "the provider failed", "status 500, unavailable"},
		{"key", 401, modeltest.Failure{Type: "authentication_error", Message: "bad key " + key}, model.Auth, "mend api_key: bad key [secret api_key]", "status 401, auth"},
		{"forbidden", 403, modeltest.Failure{Type: "permission_error", Message: "no"}, model.Auth, "does not let this host in", "status 403, auth"},
		{"model", 404, modeltest.Failure{Type: "not_found_error", Message: "model: model-1"}, model.Auth, "mend model or base_url", "status 404, the provider knows no such model or address"},
		{"long, by its code", 400, modeltest.Failure{Type: "context_length_exceeded", Message: "8193 tokens"}, model.TooLong, "too long", "status 400, too long"},
		{"long, by its words", 400, modeltest.Failure{Type: "invalid_request_error", Message: "prompt is too long: 9 > 8"}, model.TooLong, "too long", "status 400, too long"},
		{"bad request", 400, modeltest.Failure{Type: "invalid_request_error", Message: strings.Repeat("x", 10_000)}, model.Refused, "…", "status 400, refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, provider string, streamed bool) {
				w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Status: c.status, Failure: c.failure}))
				_, pieces, err := ask(t, w.open(t), question, streamed)
				e := failed(t, err, c.kind, c.text)
				if want := "models.default: " + c.cause; e.Cause() != want {
					t.Errorf("the cause is %q, want %q", e.Cause(), want)
				}
				if e.Status != c.status || pieces != 0 || len(e.Message) > 600 {
					t.Errorf("status %d, %d pieces, %d bytes", e.Status, pieces, len(e.Message))
				}
			})
		})
	}
}

// TestForeignComplaint covers error bodies of compatible servers and of proxies.
func TestForeignComplaint(t *testing.T) {
	for _, c := range []struct{ name, kind, body, text string }{
		{"text", "text/plain", "upstream connect error", "upstream connect error"},
		{"a page", "text/html", "<html>\n<body>502</body>\n</html>", "<html> <body>502</body> </html>"},
		{"an error of text", "application/json", `{"error":"model is loading"}`, "model is loading"},
		{"a message", "application/json", `{"message":"no route","code":502}`, "no route"},
		{"a detail", "application/json", `{"detail":"gone"}`, "gone"},
		{"a number for a code", "application/json", `{"error":{"message":"m","code":502}}`, ": m"},
		{"nothing", "application/json", `{}`, "the provider failed"},
		{"a flood", "text/plain", strings.Repeat("a ", 1<<20), "…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, provider string, streamed bool) {
				w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Status: 502, Body: c.body, Type: c.kind}))
				_, _, err := ask(t, w.open(t), question, streamed)
				failed(t, err, model.Unavailable, c.text)
			})
		})
	}
}

func TestNoKey(t *testing.T) {
	each(t, func(t *testing.T, provider string, streamed bool) {
		w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Status: 401}))
		w.spec.APIKey = ""
		_, _, err := ask(t, w.open(t), question, streamed)
		failed(t, err, model.Auth, "set api_key")
		for name, value := range w.Requests()[0].Header {
			if name == "Authorization" || name == "X-Api-Key" {
				t.Errorf("%s: %s", name, value)
			}
		}
	})
}

// TestRedirect: neither prompt nor key follows a redirect.
func TestRedirect(t *testing.T) {
	each(t, func(t *testing.T, provider string, streamed bool) {
		thief := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{}))
		w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{
			Status: http.StatusTemporaryRedirect, Header: map[string]string{"Location": thief.spec.BaseURL},
		}))
		_, _, err := ask(t, w.open(t), question, streamed)
		if e := failed(t, err, model.Auth, "put its address into base_url"); e.Cause() != "models.default: status 307, redirect" {
			t.Errorf("the cause is %q", e.Cause())
		}
		if n := len(thief.Requests()); n != 0 {
			t.Errorf("%d requests followed", n)
		}
	})
}

// TestBrokenStream: an incomplete answer is an error, and after the first piece there is
// no retry.
func TestBrokenStream(t *testing.T) {
	reply := modeltest.Reply{Text: []string{"one ", "two ", "three "}, Calls: []modeltest.Call{{ID: "a", Name: "n", Arguments: []string{"{", "}"}}}}
	for _, provider := range []string{model.OpenAI, model.Anthropic} {
		t.Run(provider, func(t *testing.T) {
			whole := 8 // openai: the role, 3 texts, a call with 2 arguments, the finish
			if provider == model.Anthropic {
				whole = 14 // up to message_delta
			}
			for n := 1; n < whole; n++ {
				r := reply
				r.Events = n
				w := newWorld(t, provider, modeltest.InOrder(r, r))
				w.spec.Retries = 1
				_, pieces, err := ask(t, w.open(t), question, true)
				failed(t, err, model.Unavailable, "bro")
				want := 1
				if pieces == 0 {
					want = 2
				}
				if got := len(w.Requests()); got != want {
					t.Errorf("after %d events and %d pieces: %d tries, want %d", n, pieces, got, want)
				}
			}
		})
	}
}

// TestErrorInStream: the status is already 200, so the codes in the body decide.
func TestErrorInStream(t *testing.T) {
	for _, c := range []struct {
		fail modeltest.Failure
		kind model.Kind
	}{
		{modeltest.Failure{Type: "overloaded_error", Message: "Overloaded"}, model.Overloaded},
		{modeltest.Failure{Type: "rate_limit_error", Message: "slow"}, model.RateLimited},
		{modeltest.Failure{Type: "api_error", Message: "Internal " + key}, model.Unavailable},
		{modeltest.Failure{Type: "invalid_request_error", Message: "no"}, model.Refused},
	} {
		t.Run(c.fail.Type, func(t *testing.T) {
			for _, provider := range []string{model.OpenAI, model.Anthropic} {
				w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Text: []string{"one "}, Fail: &c.fail}))
				w.spec.Retries = 3
				_, pieces, err := ask(t, w.open(t), question, true)
				e := failed(t, err, c.kind, strings.ReplaceAll(c.fail.Message, key, "[secret api_key]"))
				if pieces != 1 || e.Status != 0 || len(w.Requests()) != 1 {
					t.Errorf("%s: %d pieces, status %d, %d tries", provider, pieces, e.Status, len(w.Requests()))
				}
			}
		})
	}
}

func TestMalformedStream(t *testing.T) {
	const stream = "text/event-stream"
	for _, c := range []struct {
		name, provider, body string
		kind                 model.Kind
	}{
		{"no JSON", model.OpenAI, "data: {\"choices\": [\n\n", model.Malformed},
		{"no JSON", model.Anthropic, "event: message_start\ndata: {\"type\": \n\n", model.Malformed},
		{"an array", model.OpenAI, "data: []\n\ndata: [DONE]\n\n", model.Malformed},
		{"only the end", model.OpenAI, "data: [DONE]\n\n", model.Unavailable},
		{"never any choices", model.OpenAI, "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", model.Unavailable},
		{"no events", model.OpenAI, "hello\n", model.Unavailable},
		{"no events", model.Anthropic, "hello\n", model.Unavailable},
		{"nothing", model.OpenAI, "\n", model.Unavailable},
		{"a delta without a block", model.Anthropic, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n", model.Malformed},
		{"an error that is no JSON", model.Anthropic, "event: error\ndata: oops\n\n", model.Refused},
		{"a call without a name", model.OpenAI, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n", model.Malformed},
		{"a name without end", model.OpenAI, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"" + strings.Repeat("n", 1000) + "\"}}]}}]}\n\n", model.Malformed},
	} {
		t.Run(c.provider+", "+c.name, func(t *testing.T) {
			w := newWorld(t, c.provider, modeltest.InOrder(modeltest.Reply{Body: c.body, Type: stream}))
			_, _, err := ask(t, w.open(t), question, true)
			failed(t, err, c.kind, "")
		})
	}
}

// A stream in another provider's format contains nothing known; the error names the keys
// to change.
func TestStreamOfAnother(t *testing.T) {
	w := newWorld(t, model.Anthropic, modeltest.InOrder(modeltest.Reply{Body: "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", Type: "text/event-stream"}))
	_, _, err := ask(t, w.open(t), question, true)
	failed(t, err, model.Unavailable, "none of it was of the provider anthropic; is base_url \""+w.spec.BaseURL)
}

func TestMalformedWhole(t *testing.T) {
	for _, c := range []struct {
		name, body, kind string
		want             model.Kind
	}{
		{"no JSON", "{", "application/json", model.Malformed},
		{"a page", "<html>Welcome</html>", "text/html", model.Malformed},
		{"no choices", `{"object":"chat.completion","choices":[]}`, "application/json", model.Malformed},
		{"an array", `[]`, "application/json", model.Malformed},
		{"null", `null`, "application/json", model.Malformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, model.OpenAI, modeltest.InOrder(modeltest.Reply{Body: c.body, Type: c.kind}))
			_, _, err := ask(t, w.open(t), question, false)
			failed(t, err, c.want, "")
		})
	}
}

func TestTooLarge(t *testing.T) {
	piece := strings.Repeat("x", 1<<20)
	huge := make([]string, 5)
	for i := range huge {
		huge[i] = piece
	}
	calls := make([]modeltest.Call, 129)
	for i := range calls {
		calls[i] = modeltest.Call{ID: "c", Name: "n"}
	}
	for i := range calls {
		calls[i].ID += strings.Repeat("i", i)
	}
	for _, c := range []struct {
		name  string
		reply modeltest.Reply
		text  string
	}{
		{"text", modeltest.Reply{Text: huge}, "more than 4194304 bytes"},
		{"reasoning", modeltest.Reply{Reasoning: huge}, "more than 4194304 bytes"},
		{"arguments", modeltest.Reply{Calls: []modeltest.Call{{ID: "a", Name: "n", Arguments: huge[:1]}}}, "the arguments of the tool call n"},
		{"calls", modeltest.Reply{Calls: calls}, "more than 128 tool calls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, provider string, streamed bool) {
				w := newWorld(t, provider, modeltest.InOrder(c.reply))
				w.spec.Retries = 3
				_, _, err := ask(t, w.open(t), question, streamed)
				failed(t, err, model.TooLarge, c.text)
			})
		})
	}
}

// TestTooLargeBody: a body without an answer is bounded as well.
func TestTooLargeBody(t *testing.T) {
	each(t, func(t *testing.T, provider string, streamed bool) {
		w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Body: strings.Repeat(": nothing to say\n\n", 1<<20), Type: "text/event-stream"}))
		_, _, err := ask(t, w.open(t), question, streamed)
		failed(t, err, model.TooLarge, "more than 16777216 bytes")
	})
}

// TestManyParts: a client library turns a few bytes of an answer into a thousand, so the
// number of values is bounded.
func TestManyParts(t *testing.T) {
	many := strings.Repeat(`{},`, 100_000) + `{}`
	whole := `{"choices":[` + many + `],"message":{"content":[` + many + `]}}`
	for _, c := range []struct{ name, body, kind string }{
		{"an event", "event: message_start\ndata: " + whole + "\n\n", "text/event-stream"},
		{"lines of an event", "event: message_start\ndata: " + strings.ReplaceAll(whole, ",", ",\ndata: ") + "\n\n", "text/event-stream"},
		{"behind a quote", ": \"\ndata: " + whole + "\n\n", "text/event-stream"},
		{"behind an escaped quote", `{"a":"\\\"","b":` + whole + `}`, "application/json"},
		{"a document", whole, "application/json"},
		{"a document with blank lines", strings.ReplaceAll(whole, ",", ",\n\n"), "application/json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, provider string, streamed bool) {
				w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Body: c.body, Type: c.kind}))
				_, _, err := ask(t, w.open(t), question, streamed)
				var e *model.Error
				if whole := provider == model.OpenAI && !streamed; whole == (c.kind == "application/json") {
					failed(t, err, model.TooLarge, "more than 16384 parts")
				} else if !errors.As(err, &e) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// TestManyTexts: delimiters within strings do not count, and each event counts by itself.
func TestManyTexts(t *testing.T) {
	each(t, func(t *testing.T, provider string, streamed bool) {
		list := "[" + strings.Repeat(`"\"",`, 40_000) + `""]`
		reply := modeltest.Reply{Text: slices.Repeat([]string{"{,"}, 8000), Calls: []modeltest.Call{{ID: "c", Name: "n", Arguments: []string{list}}}}
		rsp, _, err := ask(t, newWorld(t, provider, modeltest.InOrder(reply)).open(t), question, streamed)
		if err != nil || rsp.ToolCalls[0].Arguments != list {
			t.Errorf("got %v", err)
		}
	})
}

func TestSilence(t *testing.T) {
	for _, provider := range []string{model.OpenAI, model.Anthropic} {
		w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Text: []string{"one "}, Stall: true}))
		w.spec.IdleTimeout = 100 * time.Millisecond
		_, pieces, err := ask(t, w.open(t), question, true)
		failed(t, err, model.Unavailable, "said nothing for 100ms")
		if pieces != 1 {
			t.Errorf("%d pieces", pieces)
		}
	}
}

// TestDrip: a stream that is never idle for long ends with the call's timeout.
func TestDrip(t *testing.T) {
	for _, provider := range []string{model.OpenAI, model.Anthropic} {
		w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Text: []string{"one "}, Stall: true}))
		w.spec.Timeout = 200 * time.Millisecond
		_, _, err := ask(t, w.open(t), question, true)
		failed(t, err, model.Unavailable, "no whole answer within 200ms; raise timeout")
	}
}

func TestCallerGone(t *testing.T) {
	why := errors.New("nobody waits")
	for _, provider := range []string{model.OpenAI, model.Anthropic} {
		w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Text: []string{"one "}, Stall: true}))
		w.spec.Retries = 3
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := w.open(t).Chat(ctx, question, "", func(abi.ChatPiece) error { cancel(why); return nil })
		if !errors.Is(err, why) || len(w.Requests()) != 1 {
			t.Errorf("%s: %v after %d tries", provider, err, len(w.Requests()))
		}
	}
}

func TestUnreachable(t *testing.T) {
	each(t, func(t *testing.T, provider string, streamed bool) {
		w := newWorld(t, provider, nil)
		w.spec.BaseURL = "http://127.0.0.1:1/v1"
		_, _, err := ask(t, w.open(t), question, streamed)
		failed(t, err, model.Unavailable, "connection")
	})
}
