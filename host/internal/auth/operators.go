package auth

import (
	"context"
	"fmt"
)

// Operators are principals whose ids no admin may have: MAIL knows both as
// admins, so that two with one id would read and answer each other's tasks.
type Operators []Principal

// Share reports whether a principal would share an operator's MAIL instance.
func (o Operators) Share(p Principal) bool {
	for _, op := range o {
		if p.Role == Admin && p.Tenant == op.Tenant && p.ID == op.ID {
			return true
		}
	}
	return false
}

// Apart is an authenticator that knows no admin with an operator's id, whoever
// vouches for one.
type Apart struct {
	Authenticator
	Operators Operators
}

// Authenticate implements [Authenticator].
func (a Apart) Authenticate(ctx context.Context, token string) (Principal, error) {
	p, err := a.Authenticator.Authenticate(ctx, token)
	if err == nil && a.Operators.Share(p) {
		return Principal{}, &Unknown{Reason: fmt.Sprintf("%s has the id of an operator in [[auth.keys]]; one of them needs another", p)}
	}
	return p, err
}
