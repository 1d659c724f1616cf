package mail_test

import (
	"cmp"
	"strings"
	"testing"

	"skep/spec/mail"
)

// TestParseOwner covers and S-07: this host's own form.
func TestParseOwner(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in          string
		own, abroad bool
	}{
		{"user:alice@hive", true, true},
		{"admin:A.b_c~d-9@hive", true, true},
		{"swarm:harbor@depot", true, true},
		{"user:alice%40example.com@hive", true, true},
		{"user:acme/alice@hive", true, true},
		{"user:" + strings.Repeat("a", 128) + "@hive", true, true},
		{"user:" + strings.Repeat("a", 129) + "@hive", false, true},
		{"user:" + strings.Repeat("%2F", 128) + "@hive", true, true},
		{"user:alice@example.com@hive", false, true},
		{"user:a:b@hive", false, true},
		{"user:default/alice@hive", false, true},
		{"user:a/b/c@hive", false, true},
		{"user:/a@hive", false, true},
		{"user:a/@hive", false, true},
		{"user:%61@hive", false, true},
		{"user:%2f@hive", false, true},
		{"user:%4@hive", false, true},
		{"user:a b@hive", false, true},
		{"agent:remote@remote", false, true},
		{"agent:remote@remote:x", false, false},
		{":a@hive", false, false},
		{"user:@hive", false, false},
		{"user:a@", false, false},
		{"user@hive", false, false},
		{"user:a", false, false},
		{"us@er:a", false, false},
		{"", false, false},
		{"user:a\n@hive", false, false},
		{"user:a@hi ve", false, false},
		{"user:\xff@hive", false, false},
	} {
		o, err := mail.ParseOwner(tc.in)
		if (err == nil) != tc.own || err == nil && o.String() != tc.in {
			t.Errorf("ParseOwner(%q) = %v, %v; want ok = %v", tc.in, o, err, tc.own)
		}
		o, err = mail.ParseForeignOwner(tc.in)
		if (err == nil) != tc.abroad || err == nil && o.String() != tc.in {
			t.Errorf("ParseForeignOwner(%q) = %v, %v; want ok = %v", tc.in, o, err, tc.abroad)
		}
	}
}

func TestNewOwner(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ tenant, id, want string }{
		{"", "alice", "user:alice@hive"},
		{"default", "alice", "user:alice@hive"},
		{"acme", "alice", "user:acme/alice@hive"},
		// No id can pass for another tenant's, another swarm's or another role's.
		{"", "acme/alice", "user:acme%2Falice@hive"},
		{"", "admin:bob@hive", "user:admin%3Abob%40hive@hive"},
		{"", "100%", "user:100%25@hive"},
		{"", "é\x00", "user:%C3%A9%00@hive"},
		{"a/b", "c", "user:a%2Fb/c@hive"},
	} {
		o, err := mail.NewOwner(mail.RoleUser, tc.tenant, tc.id, "hive")
		if err != nil || o.String() != tc.want {
			t.Errorf("NewOwner(%q, %q) = %v, %v; want %s", tc.tenant, tc.id, o, err, tc.want)
		}
		if back, err := mail.ParseOwner(o.String()); err != nil || back != o {
			t.Errorf("ParseOwner(%q) = %v, %v", o, back, err)
		}
		tenant, id, err := mail.SplitPrincipal(o.ID)
		if err != nil || id != tc.id || tenant != cmp.Or(tc.tenant, mail.DefaultTenant) {
			t.Errorf("SplitPrincipal(%q) = %q, %q, %v", o.ID, tenant, id, err)
		}
	}
	for _, id := range []string{"", strings.Repeat("x", 129)} {
		if o, err := mail.NewOwner(mail.RoleUser, "", id, "hive"); err == nil {
			t.Errorf("NewOwner took the id %q as %v", id, o)
		}
	}
}

func FuzzParseOwner(f *testing.F) {
	for _, s := range []string{"user:alice@hive", "user:acme/alice%40@hive", "agent:a:b@c@d", ":@", "swarm:%00@x"} {
		f.Add(s, "acme", "alice")
	}
	f.Fuzz(func(t *testing.T, s, tenant, id string) {
		own, err := mail.ParseOwner(s)
		if err == nil {
			if own.String() != s {
				t.Fatalf("ParseOwner(%q).String() = %q", s, own)
			}
			if _, err := mail.ParseForeignOwner(s); err != nil {
				t.Fatalf("%q is ours and not foreign: %v", s, err)
			}
			ten, id, err := mail.SplitPrincipal(own.ID)
			if err != nil || mail.PrincipalID(ten, id) != own.ID {
				t.Fatalf("SplitPrincipal(%q) = %q, %q, %v", own.ID, ten, id, err)
			}
		}
		if o, err := mail.ParseForeignOwner(s); err == nil && o.String() != s {
			t.Fatalf("ParseForeignOwner(%q).String() = %q", s, o)
		}
		o, err := mail.NewOwner(mail.RoleUser, tenant, id, "hive")
		if err != nil {
			return
		}
		back, err := mail.ParseOwner(o.String())
		if err != nil || back != o || strings.Count(o.String(), ":") != 1 || strings.Count(o.String(), "@") != 1 {
			t.Fatalf("NewOwner(%q, %q) = %q, read as %v, %v", tenant, id, o, back, err)
		}
	})
}
