package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"skep/host/internal/swarm"
	"skep/host/internal/turn/egress"
	"skep/spec/mail"
)

// Limits of a registration, in bytes.
const (
	maxToken    = 4 << 10
	maxMetadata = 16 << 10
)

// Request registers a swarm.
type Request struct {
	Name    string
	BaseURL string
	// Token is the bearer token for calls to the swarm: the token itself, or a
	// reference to a variable. Empty means none.
	Token    string
	Volatile bool
	// Metadata is a JSON object or nil.
	Metadata json.RawMessage
	// Operator is set for a request of the operator, who alone may change an
	// entry whose token is in a variable.
	Operator bool
}

// swarmName matches names that can be registered: they give the name of a
// variable and are no path. Other names go into the operator's file.
var swarmName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// reference matches a token in an environment variable.
var reference = regexp.MustCompile(`^\$\{([A-Za-z0-9_]+)\}$`)

// TokenVariable returns the variable with the token for a swarm.
func TokenVariable(name string) string { return "SWARM_AUTH_TOKEN_" + mail.FoldSwarmName(name) }

func checkName(name string) error {
	if err := mail.CheckSwarmName(name); err != nil {
		return invalid("name %v", err)
	}
	if !swarmName.MatchString(name) || name == mail.ReservedAll {
		return invalid(`name must be 1 to 128 letters, digits, ".", "_" or "-", begin with a letter or digit, and not be "all"; another name takes [peers.NAME] in swarm.toml`)
	}
	return nil
}

// tokenRef is the one reference that an entry may have.
func tokenRef(name string) string { return "${" + TokenVariable(name) + "}" }

// check validates a request and normalizes its URL.
func (q *Request) check() error {
	if err := checkName(q.Name); err != nil {
		return err
	}
	base, err := baseURL(q.BaseURL)
	if err != nil {
		return err
	}
	q.BaseURL = base
	if len(q.Token) > maxToken || strings.ContainsFunc(q.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return invalid("auth_token must be visible ASCII, at most %d bytes", maxToken)
	}
	// Any other variable would let an administrator send its value to an address
	// of their choice.
	if m := reference.FindStringSubmatch(q.Token); m != nil && m[1] != TokenVariable(q.Name) {
		return invalid("auth_token may refer to no variable but ${%s}; a token from elsewhere takes [peers.%s] in swarm.toml", TokenVariable(q.Name), q.Name)
	}
	if len(q.Metadata) > maxMetadata {
		return invalid("metadata has %d bytes, at most %d", len(q.Metadata), maxMetadata)
	}
	if q.Metadata != nil && !bytes.HasPrefix(q.Metadata, []byte("{")) {
		return invalid("metadata must be an object or null")
	}
	return nil
}

// baseURL validates a swarm's URL and removes trailing slashes.
func baseURL(text string) (string, error) {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "", invalid("base_url must not have spaces or control characters")
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", invalid("base_url must be as in https://depot.example")
	}
	if u.User != nil || strings.ContainsAny(text, "?#*") {
		return "", invalid("base_url must not have credentials, a query, a fragment or a *")
	}
	text = strings.TrimRight(text, "/")
	if _, err := egress.ParseGrant(text); err != nil {
		return "", invalid("base_url: %v", err)
	}
	return text, nil
}

// tokens returns the token's reference for the file and its literal value for
// memory.
func (q *Request) tokens() (ref, literal string) {
	switch {
	case q.Token == "":
		return "", ""
	case reference.MatchString(q.Token):
		return q.Token, ""
	case q.Volatile:
		return "", q.Token
	}
	return tokenRef(q.Name), q.Token
}

func invalid(format string, args ...any) error { return refuse(swarm.ErrInvalid, format, args...) }

func refuse(kind error, format string, args ...any) error {
	return &swarm.Refusal{Kind: kind, Text: fmt.Sprintf(format, args...)}
}
