package auth

import (
	"context"
	"fmt"
)

// Operators are principals whose ids no admin may have: MAIL has both as admins,
// so that two with one id would read and answer each other's tasks.
type Operators []Principal

// Conflicts reports whether a principal would share an operator's MAIL instance.
func (o Operators) Conflicts(p Principal) bool {
	for _, op := range o {
		if p.Role == Admin && p.Tenant == op.Tenant && p.ID == op.ID {
			return true
		}
	}
	return false
}

// OperatorGuard is an authenticator that refuses an admin with an operator's id,
// from any backend.
type OperatorGuard struct {
	Authenticator
	Operators Operators
}

// Authenticate implements [Authenticator].
func (a OperatorGuard) Authenticate(ctx context.Context, token string) (Principal, error) {
	p, err := a.Authenticator.Authenticate(ctx, token)
	if err == nil && a.Operators.Conflicts(p) {
		return Principal{}, &Unknown{Reason: fmt.Sprintf("%s has the id of an operator in [[auth.keys]]; one of them needs another", p)}
	}
	return p, err
}
