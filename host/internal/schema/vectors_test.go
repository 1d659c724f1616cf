package schema_test

import (
	"errors"
	"testing"

	"skep/host/internal/schema"
	"skep/spec/conformance"
	"skep/spec/mail"
)

func load(t testing.TB) *schema.Set {
	t.Helper()
	s, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestVectors: the schemas give the verdicts of the vectors, and name the same
// field (R-001, R-002, R-005 to, S-01).
func TestVectors(t *testing.T) {
	t.Parallel()
	s := load(t)
	for _, suite := range []struct {
		name  string
		load  func() ([]conformance.Vector, error)
		judge func([]byte) error
	}{
		{"message", conformance.Messages, s.Message},
		{"interswarm", conformance.Interswarm, s.Interswarm},
	} {
		all, err := suite.load()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range all {
			t.Run(suite.name+"/"+v.Name, func(t *testing.T) {
				t.Parallel()
				err := suite.judge(v.Raw)
				if (err == nil) != (v.Fault == "") {
					t.Fatalf("error %v, want fault %q\n%s", err, v.Fault, v.Raw)
				}
				if v.Fault != "" && v.Fault != "*" && v.Fault != "." && !faultAt(err, v.Fault) {
					t.Errorf("no fault at %s: %v", v.Fault, err)
				}
			})
		}
	}
}

func faultAt(err error, path string) bool {
	var all schema.Faults
	if !errors.As(err, &all) {
		return false
	}
	for _, f := range all {
		if f.Path == path {
			return true
		}
	}
	return false
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s := load(t)
	for _, tc := range []struct{ in, want string }{
		{`{"id":1,"timestamp":"now","message":{},"msg_type":"x"}`,
			`id: must be a string, not a number; ` +
				`msg_type: must be one of "request", "response", "broadcast", "interrupt", "broadcast_complete"; ` +
				`timestamp: must be an RFC 3339 date-time`},
		{`[]`, `must be an object, not an array`},
		{`{"msg_type":"request"}`, `id: is missing; message: is missing; timestamp: is missing`},
		{`{"msg_type":"interrupt","message":{"interrupt_id":"","recipients":[]}}`,
			`id: is missing; message.body: is missing; message.interrupt_id: must be a UUID; ` +
				`message.recipients: must not be empty; and 4 more`},
		{`{"a\nb":1,"0":2,"id":"x","timestamp":"","message":null}`,
			`0: is not a known key; ["a\nb"]: is not a known key; id: must be a UUID; ` +
				`message: must be an object, not null; and 2 more`},
		{`{`, `is not valid JSON: unexpected end of JSON input`},
		{`{}{}`, `is not valid JSON: invalid character '{' after top-level value`},
		{`{"a":1,"\u0061":2}`, `a: occurs twice`},
		{`{"a":"\ud800"}`, `has half a surrogate pair in a string`},
		{"\"\xff\"", `is not valid UTF-8`},
	} {
		err := s.Message([]byte(tc.in))
		if err == nil || err.Error() != tc.want {
			t.Errorf("Message(%s)\n got %v\nwant %s", tc.in, err, tc.want)
		}
	}
	var fe *mail.FieldError
	if err := s.Message([]byte(`{}`)); !errors.As(err, &fe) {
		t.Errorf("no *mail.FieldError in %v", err)
	}
}
