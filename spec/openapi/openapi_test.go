package openapi_test

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"skep/spec"
	"skep/spec/openapi"
)

func published(t *testing.T) *openapi.Document {
	t.Helper()
	doc, err := openapi.Parse(spec.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// What hosts carry was made from the description as it is.
func TestGenerated(t *testing.T) {
	t.Parallel()
	doc := published(t)
	text, err := doc.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(append(text, '\n'), spec.OpenAPIJSON()) {
		t.Error("spec/openapi.json is not up to date, run go generate ./spec")
	}
	page, err := doc.Page()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, spec.OpenAPIPage()) {
		t.Error("spec/openapi.html is not up to date, run go generate ./spec")
	}
}

// The page has every operation and every schema.
func TestPage(t *testing.T) {
	t.Parallel()
	doc, page := published(t), string(spec.OpenAPIPage())
	for _, op := range doc.Operations() {
		id, _ := op.Spec["operationId"].(string)
		if !strings.Contains(page, `<section id="`+id+`">`) {
			t.Errorf("the page lacks %s", op)
		}
	}
	for name := range doc.Dig(doc.Root(), "components", "schemas").(map[string]any) {
		if !strings.Contains(page, "<code>"+name+"</code>") {
			t.Errorf("the page lacks the shape %s", name)
		}
	}
}

// Every example is one, and every operation has what readers need: an id of its
// own, a summary, an example of what it takes and gives.
func TestPublished(t *testing.T) {
	t.Parallel()
	doc := published(t)
	if n, err := doc.Examples(); err != nil || n < 60 {
		t.Errorf("%d examples: %v", n, err)
	}
	ids := map[any]bool{}
	for _, op := range doc.Operations() {
		id := op.Spec["operationId"]
		if ids[id] || id == nil || op.Spec["summary"] == nil || op.Spec["tags"] == nil {
			t.Errorf("%s: operationId %v, summary %v, tags %v", op, id, op.Spec["summary"], op.Spec["tags"])
		}
		ids[id] = true
		if body := doc.Dig(op.Spec, "requestBody"); body != nil && doc.Dig(body, "content", "application/json", "example") == nil {
			t.Errorf("%s lacks an example of its body", op)
		}
	}
}

const small = `openapi: 3.1.0
info:
  title: T
  version: "1"
tags:
  - name: a
paths:
  /things/{id}:
    post:
      tags: [a]
      operationId: make
      x-roles: [user]
      parameters:
        - name: id
          in: path
          required: true
          schema: {"type": "integer", "maximum": 9}
        - name: q
          in: query
          schema: {"type": "boolean"}
        - name: X-Deep
          in: header
          schema: {"type": "string", "minLength": 3}
      requestBody:
        required: true
        content:
          application/json:
            schema: {"$ref": "#/components/schemas/Thing"}
            example: {"n": 1}
      responses:
        "200":
          description: made
          headers:
            ETag:
              required: true
              schema: {"type": "string"}
          content:
            application/json:
              schema: {"$ref": "#/components/schemas/Thing"}
        "204":
          description: nothing
        "400": {"$ref": "#/components/responses/Bad"}
  /things/all:
    post:
      tags: [a]
      operationId: all
      security: []
      responses:
        "200":
          description: text
          content:
            text/plain:
              schema: {"type": "string", "maxLength": 3}
components:
  responses:
    Bad:
      description: bad
      content:
        application/json:
          schema: {"$ref": "#/components/schemas/Thing"}
  schemas:
    Thing:
      type: object
      required: [n]
      properties:
        n: {"type": "integer"}
`

func TestRequest(t *testing.T) {
	t.Parallel()
	doc, err := openapi.Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ target, header, body, want string }{
		{"/things/5", "", `{"n":1}`, ""},
		{"/things/5?q=true", "long", `{"n":1}`, ""},
		{"/things/x", "", `{"n":1}`, "path parameter id"},
		{"/things/10", "", `{"n":1}`, "path parameter id"},
		{"/things/5?q=maybe", "", `{"n":1}`, "query parameter q"},
		{"/things/5", "ab", `{"n":1}`, "header parameter X-Deep"},
		{"/things/5", "", `{"n":"1"}`, "got string, want integer"},
		{"/things/5", "", `{`, "no JSON"},
		{"/things/5", "", "", "the body is missing"},
	} {
		u, err := url.Parse(c.target)
		if err != nil {
			t.Fatal(err)
		}
		op, vars := doc.Find("POST", u.EscapedPath())
		err = doc.Request(op, u, vars, http.Header{"X-Deep": {c.header}}, []byte(c.body))
		if got := errText(err); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %q %s: %q, want %q", c.target, c.header, c.body, got, c.want)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestResponse(t *testing.T) {
	t.Parallel()
	doc, err := openapi.Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		op           string
		status       int
		tag, kind    string
		body, report string
	}{
		{"POST /things/{id}", 200, "x", "application/json", `{"n":1}`, ""},
		{"POST /things/{id}", 200, "", "application/json", `{"n":1}`, "lacks the header ETag"},
		{"POST /things/{id}", 200, "x", "text/html", `{"n":1}`, `"text/html" is not described`},
		{"POST /things/{id}", 200, "x", "application/json; charset=utf-8", `{}`, "missing property 'n'"},
		{"POST /things/{id}", 204, "", "", "", ""},
		{"POST /things/{id}", 204, "", "", "x", "has a body"},
		{"POST /things/{id}", 400, "", "application/json", `{"n":1}`, ""},
		{"POST /things/{id}", 400, "", "application/json", `[]`, "want object"},
		{"POST /things/{id}", 500, "", "", "", "does not answer 500"},
		{"POST /things/all", 200, "", "text/plain", "abc", ""},
		{"POST /things/all", 200, "", "text/plain", "abcd", "maxLength"},
	} {
		head := http.Header{"Content-Type": {c.kind}}
		if c.tag != "" {
			head.Set("ETag", c.tag)
		}
		got := errText(doc.Response(doc.Operation(c.op), c.status, head, []byte(c.body)))
		if (got == "") != (c.report == "") || !strings.Contains(got, c.report) {
			t.Errorf("%s %d %q: %q, want %q", c.op, c.status, c.body, got, c.report)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	doc, err := openapi.Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		"POST /things/all": "POST /things/all", "POST /things/a%2Fb": "POST /things/{id}", "POST /things/": "", "GET /things/all": "", "POST /things": "",
	} {
		method, path, _ := strings.Cut(target, " ")
		op, _ := doc.Find(method, path)
		if got := ""; op != nil && op.String() != want || op == nil && want != got {
			t.Errorf("%s leads to %v", target, op)
		}
	}
	if op := doc.Operation("POST /things/all"); !op.Open() || doc.Operation("POST /things/{id}").Open() || doc.Operation("x") != nil {
		t.Errorf("%v", op)
	}
}

// What is broken is found when the document is read.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"a list":          {"- a", "not an object"},
		"no key":          {"a\n", "line 1"},
		"twice":           {"a: 1\na: 2\n", "line 2"},
		"indentation":     {"a:\n  b: 1\n c: 2\n", "line 3"},
		"an anchor":       {"a: &b c\n", "quoted"},
		"a bad schema":    {"components:\n  schemas:\n    A: {\"type\": \"thing\"}\n", "/components/schemas/A"},
		"a lost ref":      {"components:\n  schemas:\n    A: {\"$ref\": \"#/components/schemas/B\"}\n", "B"},
		"a bad operation": {"paths:\n  /a:\n    get: x\n", "is no operation"},
	} {
		if _, err := openapi.Parse([]byte(c.text)); !strings.Contains(errText(err), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestExamplesRefused(t *testing.T) {
	t.Parallel()
	doc, err := openapi.Parse([]byte(strings.Replace(small, `example: {"n": 1}`, `example: {"n": "1"}`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := doc.Examples(); n != 1 || !strings.Contains(errText(err), "want integer") {
		t.Errorf("%d, %v", n, err)
	}
	if err := doc.Schema("Nothing", []byte("{}")); !strings.Contains(errText(err), "there is no schema") {
		t.Error(err)
	}
}
