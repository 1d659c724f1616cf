package auth

import (
	"errors"
	"strings"
	"testing"
)

// MAIL has operators and admins as one role: no two of them share an id.
func TestOperatorsApart(t *testing.T) {
	t.Parallel()
	root := Principal{Tenant: "default", Role: Operator, ID: "root"}
	for _, c := range []struct {
		p     Principal
		share bool
	}{
		{Principal{Tenant: "default", Role: Admin, ID: "root"}, true},
		{Principal{Tenant: "default", Role: Admin, ID: "ada"}, false},
		{Principal{Tenant: "default", Role: User, ID: "root"}, false},
		{Principal{Tenant: "acme", Role: Admin, ID: "root"}, false},
		{root, false},
	} {
		first, err := NewKeys([]Key{NewKey(c.p, "a key of it")})
		if err != nil {
			t.Fatal(err)
		}
		a := OperatorGuard{first, Operators{root}}
		got, err := a.Authenticate(t.Context(), "a key of it")
		if c.share != errors.Is(err, ErrUnknown) || !c.share && got != c.p {
			t.Errorf("%s: %s, %v", c.p, got, err)
		}
		if c.p == root {
			continue
		}
		_, err = NewKeys([]Key{NewKey(c.p, "a key of it"), NewKey(root, "the operator's")})
		if c.share != (err != nil) || c.share && !strings.Contains(err.Error(), "default/admin:root has the id of an operator") {
			t.Errorf("keys of %s: %v", c.p, err)
		}
	}
	if _, err := (OperatorGuard{Authenticator: &Keys{}}).Authenticate(t.Context(), "x"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}
