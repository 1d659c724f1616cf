package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"skep/host/client"
)

// TestOwnerFlag: --owner takes each form in which an owner is printed, and refuses what is no owner.
func TestOwnerFlag(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		flags            string
		instance, tenant string
		refusal          string // a part of it
	}{
		{"--owner user:ivan", "user:ivan", "", ""},
		{"--owner user:ivan --tenant initech", "user:ivan", "initech", ""},
		{"--owner initech/user:ivan", "user:ivan", "initech", ""},
		{"--owner initech/user:ivan --tenant initech", "user:ivan", "initech", ""},
		{"--owner initech/user:a/b@c", "user:a/b@c", "initech", ""},
		{"--owner user:initech/ivan@night", "user:ivan", "initech", ""},
		{"--owner user:initech/ivan%40mail@night", "user:ivan@mail", "initech", ""},
		{"--owner user:ivan@mail.org", "user:ivan@mail.org", "", ""},
		{"--owner user:lab/ivan", "user:lab/ivan", "", ""},
		{"--owner ivan", "", "", "--owner takes ROLE:ID, as user:ivan"},
		{"--owner initech/ivan", "", "", "--owner takes ROLE:ID, as user:ivan"},
		{"--owner operator:ivan", "", "", "--owner takes ROLE:ID, as user:ivan"},
		{"--owner initech/user:", "", "", "--owner takes ROLE:ID, as user:ivan"},
		{"--owner initech/user:ivan --tenant acme", "", "", "name two tenants, initech and acme"},
		{"--tenant acme --owner user:initech/ivan@night", "", "", "name two tenants, acme and initech"},
	} {
		var of client.TaskOf
		cmd := &cobra.Command{}
		ownerFlags(cmd, &of)
		switch err := cmd.ParseFlags(strings.Fields(test.flags)); {
		case test.refusal != "":
			if err == nil || !strings.Contains(err.Error(), test.refusal) {
				t.Errorf("%s: %v, want %q", test.flags, err, test.refusal)
			}
		case err != nil || of.Instance != test.instance || of.Tenant != test.tenant:
			t.Errorf("%s: %+v %v", test.flags, of, err)
		}
	}
}
