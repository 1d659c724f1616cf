package schema

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestStranger(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a $ref was fetched")
	}))
	defer srv.Close()
	for _, tt := range []struct{ name, in, want string }{
		{"all of draft 7", `{"type":"object","properties":{"n":{"type":"integer","minimum":1},"l":{"$ref":"#/definitions/l"}},
			"definitions":{"l":{"type":"array","items":{"pattern":"^a"}}},"if":{},"then":{"not":{}},"x-mine":1}`, ""},
		{"nothing asked", `{}`, ""},
		{"no JSON", `{`, "no JSON"},
		{"no object", `[]`, "a schema is a JSON object"},
		{"no such type", `{"properties":{"a":{"type":"text"}}}`, "text"},
		{"properties is a list", `{"properties":[]}`, "properties"},
		{"bad pattern", `{"pattern":"("}`, "pattern"},
		{"dangling $ref", `{"$ref":"#/definitions/a"}`, "definitions"},
		{"$ref to elsewhere", `{"items":{"$ref":"` + srv.URL + `/x"}}`, "leads out of the schema"},
		{"$ref below another $id", `{"$id":"` + srv.URL + `/a","items":{"$ref":"b#/c"}}`, "leads out of the schema"},
		{"$ref to a file", `{"$ref":"file:///etc/hostname"}`, "leads out of the schema"},
	} {
		err := Stranger([]byte(tt.in))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
