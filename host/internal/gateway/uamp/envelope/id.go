package envelope

import (
	"strings"

	"github.com/google/uuid"
)

// ID is the id of an envelope, in the form in which ids are compared (D-U1): a UUID in
// lower case without its prefix, or what follows the prefix.
type ID string

// idPrefix begins an id on the wire; maxPlainID bounds what follows it when that is no
// UUID, in bytes.
const (
	idPrefix   = "urn:uuid:"
	maxPlainID = 64
)

// NewID returns a random id.
func NewID() ID { return ID(uuid.NewString()) }

// urn is the id on the wire, empty for none.
func (id ID) urn() string {
	if id == "" {
		return ""
	}
	return idPrefix + string(id)
}

// String returns the id on the wire.
func (id ID) String() string { return id.urn() }

// parseID reads an id: a UUID with or without its prefix, and in the default profile also
// what the document prints, a short name after the prefix. Strict takes version 4 alone.
func parseID(text string, strict bool) (ID, bool) {
	rest, isURN := text, false
	if len(text) > len(idPrefix) && strings.EqualFold(text[:len(idPrefix)], idPrefix) {
		rest, isURN = text[len(idPrefix):], true
	}
	if parsed, err := uuid.Parse(rest); err == nil && len(rest) == 36 {
		return ID(parsed.String()), !strict || parsed.Version() == 4
	}
	return ID(rest), isURN && !strict && len(rest) <= maxPlainID && isSafe(rest)
}

// isSafe reports whether a text has only unreserved characters of URIs
// (https://www.rfc-editor.org/rfc/rfc3986#section-2.3).
func isSafe(text string) bool {
	for i := range len(text) {
		b := text[i]
		if !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("-._~", b) >= 0) {
			return false
		}
	}
	return true
}
