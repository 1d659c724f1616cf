package auth

import "context"

type principalKey struct{}

// WithPrincipal puts the authenticated caller of a request into its context.
func WithPrincipal(ctx context.Context, who Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, who)
}

// PrincipalOf returns the authenticated caller of a request; ok is false without one.
func PrincipalOf(ctx context.Context) (who Principal, ok bool) {
	who, ok = ctx.Value(principalKey{}).(Principal)
	return who, ok
}
