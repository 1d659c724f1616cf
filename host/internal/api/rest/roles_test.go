package rest_test

import (
	"net/http"
	"slices"
	"testing"
)

// Only routes without a key are described as such; the others list their roles.
func TestOpenAPISecurity(t *testing.T) {
	t.Parallel()
	for _, op := range document(t).Operations() {
		guarded := slices.Contains(op.Statuses(), "401")
		if op.Open() == guarded || guarded == (len(op.Roles()) == 0) {
			t.Errorf("%s: open %v, 401 %v, roles %v", op, op.Open(), guarded, op.Roles())
		}
	}
}

// tokens are keys of each role, "none" for a caller without one.
var tokens = map[string]string{
	"none": "-", "user": aliceToken, "admin": adminToken, "operator": operatorToken, "agent": agentToken,
}

// Each operation takes the roles that it says, and no others.
func TestOpenAPIRoles_R059_R060_R061(t *testing.T) {
	t.Parallel()
	l := newStatusProducer(t)
	for _, op := range document(t).Operations() {
		for role, token := range tokens {
			q := good[op.String()]
			q.method, q.token = op.Method, token
			a := serve(t, l.well.handler, q)
			may := op.Open() || slices.Contains(op.Roles(), role)
			if refused := a.status == http.StatusUnauthorized; refused == may {
				t.Errorf("%s as %s: %d %s, roles %v", op, role, a.status, a.body, op.Roles())
			}
		}
	}
}
