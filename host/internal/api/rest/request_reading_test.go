package rest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// What a request has and no handler reads is named in the answer.
func TestIgnored(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for name, c := range map[string]struct{ method, path, body, want string }{
		"nothing":              {"POST", "/message", `{"body":"b"}`, ""},
		"a typing error":       {"POST", "/message", `{"body":"b","strem":true}`, "strem"},
		"another case":         {"POST", "/message", `{"Body":"x","body":"b"}`, "Body"},
		"a member of kwargs":   {"POST", "/message", `{"body":"b","kwargs":{"temperature":1,"max_steps":9}}`, "kwargs.temperature"},
		"two texts":            {"POST", "/message", `{"body":"b","message":"m"}`, "message"},
		"the same text twice":  {"POST", "/message", `{"body":"b","message":"b"}`, ""},
		"nulls are read":       {"POST", "/message", `{"body":"b","entrypoint":null,"task_id":null}`, ""},
		"a strange name":       {"POST", "/message", `{"body":"b","a, b\n":1}`, "a%2C%20b%0A"},
		"the query of a post":  {"POST", "/message?stream=true", `{"body":"b"}`, "?stream"},
		"an unknown parameter": {"GET", "/skep/v1/tasks?limt=3", "", "?limt"},
		"an empty parameter":   {"GET", "/skep/v1/tasks?limit=", "", "?limit"},
		"a known parameter":    {"GET", "/skep/v1/tasks?limit=3", "", ""},
		"too many":             {"GET", "/status?a=&b=&c=&d=&e=&f=&g=&h=&i=&j=", "", "?a, ?b, ?c, ?d, ?e, ?f, ?g, ?h, and%202%20more"},
	} {
		a := h.do(request{method: c.method, path: c.path, body: c.body})
		if got := a.header.Get("X-Skep-Ignored"); a.status != http.StatusOK || got != c.want {
			t.Errorf("%s: %d, X-Skep-Ignored %q, want %q", name, a.status, got, c.want)
		}
	}
}

// What can be read in two ways is refused.
func TestAmbiguousRequests(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for name, c := range map[string]struct{ method, path, body, want string }{
		"a parameter twice": {"GET", "/skep/v1/tasks?limit=3&limit=4", "", `limit stands 2 times in the query`},
		"half a pair":       {"POST", "/message", `{"body":"\ud800"}`, "error parsing request: half a surrogate pair in a string"},
		"the other half":    {"POST", "/message", `{"body":"a\\\udc00"}`, "error parsing request: half a surrogate pair in a string"},
		"no query":          {"GET", "/skep/v1/tasks?limit=%zz", "", `the query of the URL cannot be read: invalid URL escape "%zz"`},
	} {
		if a := h.do(request{method: c.method, path: c.path, body: c.body}); a.status != http.StatusBadRequest || a.body != detail(c.want) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := h.post(obj{"body": "🐝"}); a.status != http.StatusOK {
		t.Errorf("a whole pair: %d %s", a.status, a.body)
	}
	if a := h.do(request{method: "POST", path: "/message", body: `{"body":"\ud83d\udc1d \\ud800"}`}); a.status != http.StatusOK || !strings.Contains(a.body, `🐝 \\ud800`) {
		t.Errorf("an escaped pair: %d %s", a.status, a.body)
	}
}

// A body is JSON: a Content-Type that names another form is refused.
func TestContentType(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for kind, want := range map[string]int{
		"application/json": 200, "application/JSON; charset=UTF-8": 200, "application/vnd.mail+json": 200,
		"application/x-www-form-urlencoded": 200,
		"text/plain":                        415, "application/json; charset=latin1": 415, "multipart/form-data; boundary=x": 415, "json": 415, "application/": 415,
	} {
		a := h.do(request{method: "POST", path: "/message", body: `{"body":"b"}`, header: http.Header{"Content-Type": {kind}}})
		if a.status != want || want == http.StatusUnsupportedMediaType && !strings.Contains(a.body, "send JSON as application/json") {
			t.Errorf("%s: %d %s, want %d", kind, a.status, a.body, want)
		}
	}
}

// A structured string and the same text without quotes are one key; the same key with
// another body is a conflict.
func TestQuotedIdempotencyKey(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	task := func(key string) string {
		return h.post(obj{"body": "b"}, "Idempotency-Key", key).header.Get("X-MAIL-Task-Id")
	}
	first := task(`order "17"\`)
	if again := task(`"order \"17\"\\"`); first == "" || again != first {
		t.Errorf("tasks %q and %q", first, again)
	}
	for _, key := range []string{`"`, `"a`, `"a"b`, `"a\b"`, `""`} {
		if a := h.post(obj{"body": "b"}, "Idempotency-Key", key); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", key, a.status, a.body)
		}
	}
	if a := h.post(obj{"body": "c"}, "Idempotency-Key", `order "17"\`); a.status != http.StatusConflict {
		t.Errorf("another body: %d %s", a.status, a.body)
	}
}

// Long answers are compressed for callers that accept it, event streams are not.
func TestCompression(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.postAndWait(obj{"task_id": "t", "body": strings.Repeat("honey ", 1000)})
	for path, want := range map[string]string{
		"/tasks/t": "gzip", "/openapi.json": "gzip", "/docs": "gzip",
		"/whoami": "", "/skep/v1/tasks/t/events": "", "/tasks/unknown": "",
	} {
		plain := h.do(request{path: path, header: http.Header{"Accept-Encoding": {"gzip;q=0, *"}}})
		packed := h.do(request{path: path, header: http.Header{"Accept-Encoding": {"br, gzip"}}})
		if plain.header.Get("Content-Encoding") != "" || packed.header.Get("Content-Encoding") != want {
			t.Errorf("%s: Content-Encoding %q and %q, want %q", path, plain.header.Get("Content-Encoding"), packed.header.Get("Content-Encoding"), want)
		}
		if want == "" {
			continue
		}
		rsp := h.send(t.Context(), request{path: path, header: http.Header{"Accept-Encoding": {"gzip"}}})
		sent, err := io.Copy(io.Discard, rsp.Body)
		rsp.Body.Close()
		if packed.body != plain.body || err != nil || int(sent)*2 > len(plain.body) || packed.header.Get("Vary") == "" {
			t.Errorf("%s: %d bytes for %d, %v", path, sent, len(plain.body), err)
		}
	}
}
