package rest_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"

	diffs "github.com/google/go-cmp/cmp"

	"skep/host/internal/api/rest"
	"skep/spec"
	"skep/spec/openapi"
)

// openAPI is the published description.
var openAPI = sync.OnceValues(func() (*openapi.Document, error) { return openapi.Parse(spec.OpenAPI()) })

func document(t testing.TB) *openapi.Document {
	t.Helper()
	doc, err := openAPI()
	if err != nil {
		t.Fatal("spec/openapi.yaml:", err)
	}
	return doc
}

// undocumented compares what all tests of this package were answered with the
// description.
func undocumented() (faults []string) {
	doc, err := openAPI()
	if err != nil {
		return []string{err.Error()}
	}
	seen.Lock()
	defer seen.Unlock()
	for route, answered := range seen.by {
		var known []string
		if op := doc.Operation(route); op != nil {
			known = op.Statuses()
		}
		for status := range answered {
			if route != "none none" && !slices.Contains(known, fmt.Sprint(status)) && status != http.StatusInternalServerError && status != 499 {
				faults = append(faults, fmt.Sprintf("%s was answered with %d, which spec/openapi.yaml does not have", route, status))
			}
		}
	}
	return faults
}

// judge holds an answer against the description. What no operation answers, and
// what none answers on purpose, is left to others.
func judge(t testing.TB, q request, a answer) {
	t.Helper()
	doc := document(t)
	u, err := url.Parse(q.path)
	if err != nil || a.status >= 499 && a.status != http.StatusServiceUnavailable && a.status != http.StatusBadGateway {
		return
	}
	if op, _ := doc.Find(cmp.Or(q.method, http.MethodGet), u.EscapedPath()); op != nil && a.status != http.StatusRequestHeaderFieldsTooLarge {
		if err := doc.Response(op, a.status, a.header, []byte(a.body)); err != nil {
			t.Errorf("%s %s: %v\n%s", q.method, q.path, err, a.body)
		}
	}
}

// valid holds a JSON text against a schema of the description.
func valid(t testing.TB, doc *openapi.Document, schema, text string) {
	t.Helper()
	if err := doc.Schema(schema, []byte(text)); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestOpenAPIRoutes_R003_R057(t *testing.T) {
	t.Parallel()
	var described []string
	for _, op := range document(t).Operations() {
		described = append(described, op.String())
	}
	if diff := diffs.Diff(sorted(described), sorted(rest.Routes())); diff != "" {
		t.Errorf("spec/openapi.yaml (-) and the handler (+) differ\n%s", diff)
	}
}

// Every status the description has can be had, by a request that is as
// described if it succeeds, and is answered in the shape described. That no
// other is, TestMain looks at in the end.
func TestOpenAPIStatuses_R003_R057(t *testing.T) {
	t.Parallel()
	doc := document(t)
	l := newStatusProducer(t)
	for _, op := range doc.Operations() {
		l.checkGood(doc, op)
		for _, status := range op.Statuses() {
			a, ok := l.produce(op.String(), status)
			if got := fmt.Sprint(a.status); !ok || got != status {
				t.Errorf("%s: nobody knows how to get %s (got %s %s)", op, status, got, a.body)
				continue
			}
			if err := doc.Response(op, a.status, a.header, []byte(a.body)); err != nil {
				t.Errorf("%v\n%s", err, a.body)
			}
			headers, _ := doc.Dig(op.Spec, "responses", status, "headers").(map[string]any)
			for header := range headers {
				optional := status == "503" || header == "Preference-Applied"
				if a.header.Get(header) == "" && !optional {
					t.Errorf("%s %s lacks the header %s", op, status, header)
				}
			}
		}
	}
}

// checkGood holds the request that succeeds against the description.
func (l *statusProducer) checkGood(doc *openapi.Document, op *openapi.Operation) {
	q := good[op.String()]
	u, err := url.Parse(q.path)
	if err != nil {
		l.t.Fatal(err)
	}
	found, vars := doc.Find(op.Method, u.EscapedPath())
	if found != op {
		l.t.Errorf("%s: %q leads to %v", op, q.path, found)
		return
	}
	if err := doc.Request(op, u, vars, q.header, []byte(q.body)); err != nil {
		l.t.Errorf("%s: the request is not as described: %v", op, err)
	}
}

// The unexpected has the shape described, too.
func TestOpenAPIUnexpected_R089(t *testing.T) {
	t.Parallel()
	doc := document(t)
	h := rest.New(failingRuntime{err: fmt.Errorf("gone")}, newKeys(t), rest.Options{Swarm: "hive"})
	a := serve(t, h, request{path: "/tasks"})
	if err := doc.Schema("Error", []byte(a.body)); err != nil {
		t.Error(err)
	}
	for _, op := range doc.Operations() {
		if ref := doc.Dig(op.Spec["responses"].(map[string]any)["default"], "content", "application/json", "schema"); ref == nil {
			t.Errorf("%s does not describe the unexpected", op)
		}
	}
}
