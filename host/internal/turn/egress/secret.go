package egress

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
)

// Secret is text that the host adds as one header to requests to its hosts. No guest sees
// it, and no encoder or print verb shows its value. It is immutable.
type Secret struct {
	name   string
	value  string
	header string
	hosts  []Grant
}

// NewSecret binds a value to one header and to hosts in the form that
// [ParseGrant] reads. "https://*" is refused: every server could ask for the
// value. Errors never hold the value.
func NewSecret(name, value, header string, hosts ...string) (Secret, error) {
	s := Secret{name: name, value: value, header: http.CanonicalHeaderKey(header)}
	refuse := func(format string, args ...any) (Secret, error) {
		return Secret{}, fmt.Errorf("secrets.%s: %w", name, fmt.Errorf(format, args...))
	}
	if value == "" || !isHeaderValue(value) || strings.TrimSpace(value) != value {
		return refuse("value must be text without line breaks, control characters and space around it")
	}
	if err := checkHeaderName(header); err != nil {
		return refuse("header: %w", err)
	}
	if len(hosts) == 0 {
		return refuse("hosts must name at least one origin")
	}
	for _, h := range hosts {
		g, err := ParseGrant(h)
		if err == nil && g.hosts == anyName {
			err = errors.New(`a secret cannot go to every host; name its own, as in "https://api.example.com"`)
		}
		if err != nil {
			return refuse("hosts: %w", err)
		}
		s.hosts = append(s.hosts, g)
	}
	return s, nil
}

// HiddenValue returns a secret that is only scrubbed and sent to no host. An empty
// value is never found.
func HiddenValue(name, value string) Secret { return Secret{name: name, value: value} }

// applies reports whether a request carries the secret.
func (s Secret) applies(method string, t target) bool {
	_, ok := findGrant(s.hosts, method, t)
	return ok
}

func (s Secret) placeholder() string { return "[secret " + s.name + "]" }

// Format keeps every verb of package fmt from printing the value.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.placeholder()) }

// LogValue keeps package slog from logging the value.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.placeholder()) }

// MarshalText keeps encoders from writing the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.placeholder()), nil }
