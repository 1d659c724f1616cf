package did

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"skep/host/internal/gateway/uamp/seal"
)

// ErrInvalid is returned for a text that is no DID of the two methods.
var ErrInvalid = errors.New("it is neither a did:web nor a did:key")

// The methods, and limits of an identifier.
const (
	methodWeb = "did:web:"
	methodKey = "did:key:"
	maxID     = 512 // bytes
	maxParts  = 16  // of its path
)

// ID is an identifier of one of the two methods.
type ID struct {
	text string
	// host has a port if there is one; path are the decoded parts after it.
	host string
	path []string
	// key is set for did:key.
	key *seal.PublicKey
}

// Parse reads an identifier (U-030, U-032).
func Parse(text string) (ID, error) {
	id := ID{text: text}
	if len(text) > maxID {
		return id, ErrInvalid
	}
	if key, is := strings.CutPrefix(text, methodKey); is {
		k, err := seal.ParseMultikey(text+"#"+key, key)
		if err != nil {
			return id, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		id.key = &k
		return id, nil
	}
	rest, is := strings.CutPrefix(text, methodWeb)
	parts := strings.Split(rest, ":")
	if !is || len(parts) > maxParts {
		return id, ErrInvalid
	}
	var ok bool
	if id.host, ok = parseHost(parts[0]); !ok {
		return id, ErrInvalid
	}
	for _, part := range parts[1:] {
		decoded, err := url.PathUnescape(part)
		if err != nil || decoded == "" || decoded == "." || decoded == ".." || strings.ContainsFunc(decoded, isUnsafe) {
			return id, ErrInvalid
		}
		id.path = append(id.path, decoded)
	}
	return id, nil
}

// isUnsafe reports whether a character could change what a path or an identifier means.
func isUnsafe(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`/\?#%@:`, r) }

// parseHost reads the name of a host, with %3A before a port. An address is none: the
// method has names alone.
func parseHost(text string) (host string, ok bool) {
	name, port, has := strings.Cut(text, "%3A")
	if !has {
		name, port, has = strings.Cut(text, "%3a")
	}
	if _, err := netip.ParseAddr(name); err == nil || name == "" || strings.Trim(name, "0123456789.") == "" {
		return "", false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
			return "", false
		}
	}
	if !has {
		return name, true
	}
	if len(port) > 5 || port == "" || strings.Trim(port, "0123456789") != "" {
		return "", false
	}
	return name + ":" + port, true
}

// Web makes the identifier of a host, and of what is below it. Host has a port if there is
// one.
func Web(host string, path ...string) (ID, error) {
	text := methodWeb + strings.ReplaceAll(host, ":", "%3A")
	for _, part := range path {
		text += ":" + url.PathEscape(part)
	}
	id, err := Parse(text)
	if err == nil && !slices.Equal(id.path, path) {
		return id, ErrInvalid // a part has a character that would make it another identifier
	}
	return id, err
}

// String returns the identifier.
func (id ID) String() string { return id.text }

// Host is the host of a did:web, with its port, and empty for a did:key.
func (id ID) Host() string { return id.host }

// Path are the parts after the host, decoded.
func (id ID) Path() []string { return id.path }

// URL is where the document of a did:web is.
func (id ID) URL() string {
	if id.host == "" {
		return ""
	}
	u := url.URL{Scheme: "https", Host: id.host, Path: "/.well-known/did.json"}
	if len(id.path) > 0 {
		u.Path = "/" + strings.Join(id.path, "/") + "/did.json"
	}
	return u.String()
}

// OfURL is the identifier before the fragment of a DID URL.
func OfURL(text string) string {
	id, _, _ := strings.Cut(text, "#")
	return id
}
