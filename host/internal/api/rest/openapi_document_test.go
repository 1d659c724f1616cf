package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"skep/spec"
)

// The description is there for everybody, once for each change of it.
func TestDescription(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for path, want := range map[string]struct{ kind, part string }{
		"/openapi.json": {"application/json", `"openapi":"3.1.0"`}, "/docs": {"text/html; charset=utf-8", "<code>Wrapper</code>"},
	} {
		a := h.do(request{path: path, token: "-"})
		tag := a.header.Get("ETag")
		if a.status != http.StatusOK || a.header.Get("Content-Type") != want.kind || !strings.Contains(a.body, want.part) || len(tag) < 20 {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
		for _, has := range []string{tag, `"x", ` + tag, strings.TrimPrefix(tag, "W/"), "*"} {
			a := h.do(request{path: path, token: "-", header: http.Header{"If-None-Match": {has}}})
			if a.status != http.StatusNotModified || a.body != "" || a.header.Get("ETag") != tag {
				t.Errorf("%s with %s: %d %v", path, has, a.status, a.header)
			}
		}
		if a := h.do(request{path: path, token: "-", header: http.Header{"If-None-Match": {`"another"`}}}); a.status != http.StatusOK {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	if !json.Valid(spec.OpenAPIJSON()) {
		t.Error("openapi.json is no JSON")
	}
}

// The page runs nothing, loads nothing and cannot be framed.
func TestDescriptionIsHarmless(t *testing.T) {
	t.Parallel()
	a := newTestHost(t).do(request{path: "/docs", token: "-"})
	policy := a.header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "style-src 'sha256-"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy lacks %s: %s", part, policy)
		}
	}
	for _, part := range []string{"<script", "javascript:", " style=", " onload", "http-equiv", "<link", "<img", "@import"} {
		if strings.Contains(a.body, part) {
			t.Errorf("the page has %s", part)
		}
	}
}
