package cli

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"skep/host/client"
)

// TestExplainTaskNotFound: a task that is not found has a hint by what the caller has named; another refusal has none.
func TestExplainTaskNotFound(t *testing.T) {
	t.Parallel()
	a := &app{}
	missing := &client.Error{Status: http.StatusNotFound, Detail: "task 't' not found"}
	for _, test := range []struct {
		err  error
		of   client.TaskOf
		hint string // begins with it; empty for none
	}{
		{missing, client.TaskOf{}, "among others' tasks it is found with --owner"},
		{missing, client.TaskOf{Tenant: "acme"}, "--owner ROLE:ID names whose task of the tenant it is; `skep task list --tenant acme`"},
		{missing, client.TaskOf{Instance: "user:bob"}, "in another tenant it is found with --tenant"},
		{missing, client.TaskOf{Instance: "user:bob@hive"}, "--owner takes ROLE:ID without the swarm"},
		{missing, client.TaskOf{Instance: "user:bob", Tenant: "acme"}, ""},
		{&client.Error{Status: http.StatusNotFound, Detail: "there is no tenant 'acem'"}, client.TaskOf{Tenant: "acem"}, ""},
		{&client.Error{Status: http.StatusNotFound, Detail: "404 page not found"}, client.TaskOf{}, ""},
		{&client.Error{Status: http.StatusServiceUnavailable, Detail: "draining"}, client.TaskOf{}, ""},
	} {
		err := a.explainTaskNotFound(test.err, test.of)
		var f *failure
		if errors.As(err, &f); test.hint == "" && f != nil || test.hint != "" && (f == nil || !strings.HasPrefix(f.hint, test.hint)) {
			t.Errorf("%v of %+v: %+v", test.err, test.of, err)
		}
	}
}
