package oidc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"skep/host/internal/api/auth"
)

// jwtTable names this backend in refusals.
const jwtTable = "[auth.jwt]"

// JWTOptions of [NewJWT]. Issuer, Audience and Mapping are required.
type JWTOptions struct {
	// Issuer and Audience are the required claims of a token.
	Issuer, Audience string
	// Algorithms are the allowed signature algorithms, [Asymmetric] by default.
	Algorithms []string
	// Keys is a JSON Web Key Set (RFC 7517:
	// https://www.rfc-editor.org/rfc/rfc7517). Without it the set is fetched from
	// URL, and without URL from the address in the issuer's discovery document.
	Keys, URL string
	// Leeway is the allowed difference of clocks.
	Leeway  time.Duration
	Mapping Mapping
	Now     func() time.Time
	// Logger gets the faults of fetching keys. It may be nil.
	Logger *slog.Logger
}

// JWT is the auth backend for JSON Web Tokens of one issuer (RFC 7519:
// https://www.rfc-editor.org/rfc/rfc7519).
type JWT struct {
	opt        JWTOptions
	algorithms []jose.SignatureAlgorithm
	// fixed are the configured keys, if there are any.
	fixed     []key
	published *publishedKeys
}

var _ auth.Backend = (*JWT)(nil)

// NewJWT checks the options. It sends no request before the first token.
func NewJWT(opt JWTOptions) (*JWT, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if len(opt.Algorithms) == 0 {
		opt.Algorithms = Asymmetric
	}
	if opt.Issuer == "" || opt.Audience == "" {
		return nil, fmt.Errorf("%s needs issuer and audience", jwtTable)
	}
	j := &JWT{opt: opt}
	for _, a := range opt.Algorithms {
		known := slices.Contains(Asymmetric, a) || opt.Keys != "" && slices.Contains(Symmetric, a)
		if !known {
			return nil, fmt.Errorf("%s algorithms: %q cannot be used", jwtTable, a)
		}
		j.algorithms = append(j.algorithms, jose.SignatureAlgorithm(a))
	}
	if opt.Keys != "" {
		var err error
		if j.fixed, err = parseKeySet([]byte(opt.Keys), true); err != nil {
			return nil, fmt.Errorf("%s keys: %w", jwtTable, err)
		}
		return j, nil
	}
	address := opt.URL
	if address == "" {
		address = opt.Issuer
	}
	if err := CheckURL(address); err != nil {
		return nil, fmt.Errorf("%s: %w", jwtTable, err)
	}
	j.published = &publishedKeys{
		web: newWebClient(), now: opt.Now, address: opt.URL, issuer: opt.Issuer,
		outage: newOutage(jwtTable, opt.Logger, opt.Now),
	}
	return j, nil
}

// Close closes idle connections.
func (j *JWT) Close() {
	if j.published != nil {
		j.published.web.close()
	}
}

// Warnings returns why the last fetch of keys failed, if it did.
func (j *JWT) Warnings() []string {
	if j.published == nil {
		return nil
	}
	return j.published.outage.warnings()
}

// Claims implements [auth.Backend]: a JSON Web Token has three parts with dots
// between.
func (j *JWT) Claims(token string) bool { return strings.Count(token, ".") == 2 }

// maxToken bounds a token in bytes.
const maxToken = 16 << 10

// Authenticate implements [auth.Authenticator].
func (j *JWT) Authenticate(ctx context.Context, token string) (auth.Principal, error) {
	if !j.Claims(token) {
		return auth.Principal{}, auth.ErrUnknown
	}
	if len(token) > maxToken {
		return auth.Principal{}, reject("it has more than %d bytes", maxToken)
	}
	parsed, err := jwt.ParseSigned(token, j.algorithms)
	if err != nil {
		return auth.Principal{}, reject("it is malformed, or signed with an algorithm that is not allowed")
	}
	known, more, err := j.verifySignature(ctx, parsed)
	if err != nil {
		return auth.Principal{}, err
	}
	if err := j.checkClaims(known); err != nil {
		return auth.Principal{}, err
	}
	p, err := j.opt.Mapping.principal(known.Subject, more)
	if err != nil {
		return auth.Principal{}, reject("%v", err)
	}
	return p, nil
}

// verifySignature returns the claims of a token with a valid signature.
func (j *JWT) verifySignature(ctx context.Context, t *jwt.JSONWebToken) (known jwt.Claims, more map[string]any, err error) {
	head := t.Headers[0]
	if typ, _ := head.ExtraHeaders[jose.HeaderType].(string); !isAccess(typ) {
		return known, nil, reject("it is of a type that opens nothing, as a note of a logout")
	}
	keys := matchKeys(j.fixed, head.KeyID, head.Algorithm)
	if j.published != nil {
		if keys, err = j.published.findKeys(ctx, head.KeyID, head.Algorithm); err != nil {
			return known, nil, err
		}
	}
	if len(keys) == 0 {
		return known, nil, reject("there is no key of its id for %s", head.Algorithm)
	}
	for _, k := range keys {
		if err = t.Claims(k.value, &known, &more); err == nil {
			return known, more, nil
		}
	}
	if errors.Is(err, jose.ErrCryptoFailure) {
		return known, nil, reject("its signature is wrong")
	}
	return known, nil, reject("its claims cannot be read")
}

// isAccess reports whether a token of a type may be used for access: issuers sign
// others, such as logout tokens, with the same keys.
func isAccess(typ string) bool {
	switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
	case "", "jwt", "at+jwt":
		return true
	}
	return false
}

// checkClaims validates the registered claims.
func (j *JWT) checkClaims(c jwt.Claims) error {
	if c.Expiry == nil {
		return reject("it never expires")
	}
	if c.Issuer != j.opt.Issuer {
		return reject("it is of another issuer: it %s", otherIssuer(c.Issuer, j.opt.Issuer))
	}
	err := c.ValidateWithLeeway(jwt.Expected{
		Issuer: j.opt.Issuer, AnyAudience: jwt.Audience{j.opt.Audience}, Time: j.opt.Now(),
	}, j.opt.Leeway)
	for _, r := range []struct {
		err  error
		text string
	}{
		{jwt.ErrInvalidAudience, "it is for another audience"},
		{jwt.ErrExpired, "it has expired"},
		{jwt.ErrNotValidYet, "it is not valid yet"},
		{jwt.ErrIssuedInTheFuture, "it was issued in the future"},
	} {
		if errors.Is(err, r.err) {
			return reject("%s", r.text)
		}
	}
	if err != nil {
		return reject("its claims are not valid")
	}
	return nil
}

// maxIssuer bounds how much of an issuer's name is shown, in bytes.
const maxIssuer = 200

// otherIssuer describes how the issuer differs from the configured one.
func otherIssuer(says, issuer string) string {
	return fmt.Sprintf("says issuer %.*q; [auth.jwt] issuer is %q; write it the same, letter for letter", maxIssuer, says, issuer)
}

// reject returns an [auth.Unknown] with the reason.
func reject(format string, args ...any) error {
	return &auth.Unknown{Detail: "invalid token", Reason: jwtTable + ": " + fmt.Sprintf(format, args...)}
}
