package did

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"skep/host/internal/gateway/uamp/seal"
)

// ErrInvalid is returned for a text that is no DID of the two methods, with the reason.
var ErrInvalid = errors.New("it is no DID that can be resolved")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

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
		return id, invalid("it is longer than %d bytes", maxID)
	}
	if key, is := strings.CutPrefix(text, methodKey); is {
		k, err := seal.ParseMultikey(text+"#"+key, key)
		if err != nil {
			return id, invalid("%w", err)
		}
		id.key = &k
		return id, nil
	}
	rest, is := strings.CutPrefix(text, methodWeb)
	if !is {
		return id, invalid("it is neither a did:web nor a did:key")
	}
	parts := strings.Split(rest, ":")
	if len(parts) > maxParts {
		return id, invalid("its path has more than %d parts", maxParts-1)
	}
	var err error
	if id.host, err = parseHost(parts[0]); err != nil {
		return id, err
	}
	for _, part := range parts[1:] {
		decoded, err := url.PathUnescape(part)
		if err != nil || decoded == "" || decoded == "." || decoded == ".." || strings.ContainsFunc(decoded, isUnsafe) {
			return id, invalid("its path has a part %.80q, which is empty, a dot, or has characters that a part may not have", part)
		}
		id.path = append(id.path, decoded)
	}
	return id, nil
}

// isUnsafe reports whether a character could change what a path or an identifier means.
func isUnsafe(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`/\?#%@:`, r) }

// parseHost reads the name of a host, with %3A before a port. An address is none: the
// method has names alone.
func parseHost(text string) (host string, err error) {
	name, port, has := strings.Cut(text, "%3A")
	if !has {
		name, port, has = strings.Cut(text, "%3a")
	}
	if _, err := netip.ParseAddr(name); err == nil || name == "" || strings.Trim(name, "0123456789.") == "" {
		return "", invalid("its host %.80q is not a name", name)
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
			return "", invalid("its host %.80q is not a name", name)
		}
	}
	if !has {
		return name, nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
		return "", invalid("its port %.80q is not a number from 1 to 65535", port)
	}
	return name + ":" + port, nil
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
		return id, invalid("a part has a character that would make it another identifier")
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
