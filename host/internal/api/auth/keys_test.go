package auth_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/api/auth"
	"skep/spec/mail"
)

func key(role auth.Role, id, text string) auth.Key {
	return auth.NewKey(auth.Principal{Tenant: "default", Role: role, ID: id}, text)
}

func TestAuthenticate_R075_R087(t *testing.T) {
	t.Parallel()
	var all []auth.Key
	for i := range 50 {
		all = append(all, key(auth.User, fmt.Sprint("u", i), fmt.Sprint("secret-of-user-", i)))
	}
	all = append(all, key(auth.Operator, "root", "secret-of-operator"))
	keys, err := auth.NewKeys(all)
	if err != nil {
		t.Fatal(err)
	}
	all[0].SHA256 = sha256.Sum256([]byte("changed afterwards"))
	for token, want := range map[string]string{
		"secret-of-user-0":     "default/user:u0",
		"secret-of-user-49":    "default/user:u49",
		"secret-of-operator":   "default/operator:root",
		"changed afterwards":   "",
		"":                     "",
		"secret-of-user-":      "",
		"SECRET-OF-USER-0":     "",
		"secret-of-user-0\x00": "",
	} {
		p, err := keys.Authenticate(t.Context(), token)
		if got := p.String(); (err == nil) != (want != "") || err == nil && got != want || err != nil && !errors.Is(err, auth.ErrUnknown) {
			t.Errorf("Authenticate(%q) = %q, %v, want %q", token, got, err, want)
		}
	}
}

func TestAuthenticateWithoutKeys(t *testing.T) {
	t.Parallel()
	keys, err := auth.NewKeys(nil)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := keys.Authenticate(t.Context(), ""); err == nil {
		t.Errorf("an empty token is %v", p)
	}
}

func TestNewKeysRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys []auth.Key
		want string
	}{
		"no id":        {[]auth.Key{key(auth.User, "", "x")}, "without an id"},
		"unknown role": {[]auth.Key{key("root", "a", "x")}, `role "root"`},
		"no role":      {[]auth.Key{key("", "a", "x")}, `role ""`},
		"empty key":    {[]auth.Key{key(auth.User, "a", "")}, "is empty"},
		"shared key":   {[]auth.Key{key(auth.User, "a", "x"), key(auth.Admin, "b", "x")}, "same key"},
	} {
		if _, err := auth.NewKeys(c.keys); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: NewKeys = %v, want an error with %q", name, err, c.want)
		} else if strings.Contains(err.Error(), "x\"") {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
}

// Rows are roles, columns the needed roles.
func TestRoleCovers_R059_R060_R061(t *testing.T) {
	t.Parallel()
	needs := []auth.Role{auth.User, auth.Admin, auth.Operator, auth.Agent, ""}
	for role, want := range map[auth.Role][]bool{
		auth.User:     {true, false, false, false, false},
		auth.Admin:    {true, true, false, false, false},
		auth.Operator: {true, true, true, false, false},
		auth.Agent:    {false, false, false, true, false},
		"":            {false, false, false, false, false},
	} {
		for i, need := range needs {
			if got := role.Covers(need); got != want[i] {
				t.Errorf("%q.Covers(%q) = %v, want %v", role, need, got, want[i])
			}
		}
	}
}

func TestRoleMail_S08(t *testing.T) {
	t.Parallel()
	for role, want := range map[auth.Role]mail.Role{
		auth.User: mail.RoleUser, auth.Admin: mail.RoleAdmin, auth.Operator: mail.RoleAdmin, auth.Agent: mail.RoleSwarm,
	} {
		if got := role.Mail(); got != want || !role.Valid() {
			t.Errorf("%q.Mail() = %q, want %q", role, got, want)
		}
	}
	if auth.Role("root").Valid() {
		t.Error("role root is valid")
	}
}
