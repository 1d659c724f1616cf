package authority

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

	"skep/host/internal/auth"
)

// jwtTable names this authority in refusals.
const jwtTable = "[auth.jwt]"

// JWTOptions of [NewJWT]. Issuer, Audience and Mapping are required.
type JWTOptions struct {
	// Issuer and Audience are what a token must say.
	Issuer, Audience string
	// Algorithms are those that a token may be signed with, [Asymmetric] by
	// default.
	Algorithms []string
	// Keys is a JSON Web Key Set. Without one, the set at URL is fetched, and
	// without that the issuer is asked where its set is.
	Keys, URL string
	// Leeway is how far clocks may be apart.
	Leeway  time.Duration
	Mapping Mapping
	Now     func() time.Time
	// Logger is told why published keys cannot be had. It may be nil.
	Logger *slog.Logger
}

// JWT is the authority of an issuer of JSON Web Tokens.
type JWT struct {
	opt        JWTOptions
	algorithms []jose.SignatureAlgorithm
	// fixed are the keys when they are not published.
	fixed     []key
	published *published
}

var _ auth.Authority = (*JWT)(nil)

// NewJWT checks the options. It asks nobody yet: the first token does.
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
	j.published = &published{
		web: newWeb(), now: opt.Now, address: opt.URL, issuer: opt.Issuer,
		outage: newOutage(jwtTable, opt.Logger, opt.Now),
	}
	return j, nil
}

// Close gives connections free.
func (j *JWT) Close() {
	if j.published != nil {
		j.published.web.close()
	}
}

// Warnings says why newer keys cannot be had, if that was so at the last look.
func (j *JWT) Warnings() []string {
	if j.published == nil {
		return nil
	}
	return j.published.outage.warnings()
}

// Claims implements [auth.Authority]: three parts with dots between are a JSON
// Web Token, good or bad.
func (j *JWT) Claims(token string) bool { return strings.Count(token, ".") == 2 }

// maxToken bounds what is looked at, in bytes.
const maxToken = 16 << 10

// Authenticate implements [auth.Authenticator].
func (j *JWT) Authenticate(ctx context.Context, token string) (auth.Principal, error) {
	if !j.Claims(token) {
		return auth.Principal{}, auth.ErrUnknown
	}
	if len(token) > maxToken {
		return auth.Principal{}, refuse("it has more than %d bytes", maxToken)
	}
	parsed, err := jwt.ParseSigned(token, j.algorithms)
	if err != nil {
		return auth.Principal{}, refuse("it is malformed, or signed with an algorithm that is not allowed")
	}
	known, more, err := j.verify(ctx, parsed)
	if err != nil {
		return auth.Principal{}, err
	}
	if err := j.check(known); err != nil {
		return auth.Principal{}, err
	}
	p, err := j.opt.Mapping.principal(known.Subject, more)
	if err != nil {
		return auth.Principal{}, refuse("%v", err)
	}
	return p, nil
}

// verify returns the claims of a token whose signature is good.
func (j *JWT) verify(ctx context.Context, t *jwt.JSONWebToken) (known jwt.Claims, more map[string]any, err error) {
	head := t.Headers[0]
	if typ, _ := head.ExtraHeaders[jose.HeaderType].(string); !isAccess(typ) {
		return known, nil, refuse("it is of a type that opens nothing, as a note of a logout")
	}
	keys := match(j.fixed, head.KeyID, head.Algorithm)
	if j.published != nil {
		if keys, err = j.published.find(ctx, head.KeyID, head.Algorithm); err != nil {
			return known, nil, err
		}
	}
	if len(keys) == 0 {
		return known, nil, refuse("there is no key of its id for %s", head.Algorithm)
	}
	for _, k := range keys {
		if err = t.Claims(k.value, &known, &more); err == nil {
			return known, more, nil
		}
	}
	if errors.Is(err, jose.ErrCryptoFailure) {
		return known, nil, refuse("its signature is wrong")
	}
	return known, nil, refuse("its claims cannot be read")
}

// isAccess reports whether a token of a type may be shown to open something:
// issuers sign others, as notes of a logout, with the same keys.
func isAccess(typ string) bool {
	switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
	case "", "jwt", "at+jwt":
		return true
	}
	return false
}

// check holds the claims against what is expected.
func (j *JWT) check(c jwt.Claims) error {
	if c.Expiry == nil {
		return refuse("it never expires")
	}
	if c.Issuer != j.opt.Issuer {
		return refuse("it is of another issuer: it %s", otherIssuer(c.Issuer, j.opt.Issuer))
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
			return refuse("%s", r.text)
		}
	}
	if err != nil {
		return refuse("its claims are not valid")
	}
	return nil
}

// maxIssuer bounds what is shown of an issuer's name.
const maxIssuer = 200

// otherIssuer says how a name differs from that of the configuration.
func otherIssuer(says, issuer string) string {
	return fmt.Sprintf("says issuer %.*q; [auth.jwt] issuer is %q; write it the same, letter for letter", maxIssuer, says, issuer)
}

// refuse says why a token is nobody's.
func refuse(format string, args ...any) error {
	return &auth.Unknown{Detail: "invalid token", Reason: jwtTable + ": " + fmt.Sprintf(format, args...)}
}
